// print_test.cpp: the printed configuration states where values come from, and loads to the same values.
#include <random>

#include "tests/config/fixture.h"
#include "wd/algorithms.h"

namespace wd::test {
namespace {

using Print = ConfigTest;

TEST_F(Print, SaysWhereValuesCameFrom) {
  const Config config = load_text("name: chase\nenv: {grid_length: 1e-4}\n", {"trainer.seed=10k"});
  const std::string text = print(config);
  EXPECT_NE(text.find("\n  grid_length: 1.0e-04                      # a.yaml:2\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\n  seed: 10000                               # --set\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  num_taggers: 2                            # default\n"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("name: \"chase\"                               # a.yaml:1\n"), 0u) << text;
  EXPECT_EQ(print(config, false).find('#'), std::string::npos);
}

TEST_F(Print, LoadsBackToTheSameValues) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> unit(1e-6, 1.0);
  for (int i = 0; i < 50; ++i) {
    const std::string number = std::to_string(unit(random) * unit(random));
    const Config config = load_text(
        "name: chase\nsaving: {basedir: \"a \\\"b\\\\ # é: [\", name: '10', tag: \"\"}\n",
        {"env.tag_penalty_for_runner=-" + number, "env.grid_length=" + number + "1",
         "trainer.stop_return=-" + number, "trainer.total_steps=12345", "env.reset_pool_size=3",
         "policy={shared: {lr: [[0, 0." + std::to_string(random()) + "], [1e6, 1e-7]], algorithm: PPO, " +
             "roles: [runner, tagger], model: {fc_dims: [], activation: tanh}}}"});
    const std::string text = print(config);
    const Chase first = chase_;
    const std::uint64_t hash = config_hash(print(config, false));
    write("b.yaml", text);
    const Config again = load({.file = "b.yaml"});
    ASSERT_EQ(print(again, false), print(config, false));
    ASSERT_EQ(chase_.grid_length, first.grid_length);
    ASSERT_EQ(chase_.tag_penalty_for_runner, first.tag_penalty_for_runner);
    ASSERT_EQ(again.policies[0].algorithm.as<OnPolicySettings>().lr.points[0].value,
              config.policies[0].algorithm.as<OnPolicySettings>().lr.points[0].value);
    ASSERT_EQ(again.saving.basedir, "a \"b\\ # é: [");
    ASSERT_EQ(again.saving.name, "10");
    ASSERT_TRUE(again.notes.empty()) << again.notes[0];
    ASSERT_EQ(config_hash(print(again, false)), hash);
  }
}

TEST_F(Print, HashDiffersWithAnyValue) {
  const auto hash = [&](const std::vector<std::string>& set) {
    const Config config = load_text("name: chase", set);
    return config_hash(print(config, false));
  };
  const std::uint64_t plain = hash({});
  EXPECT_EQ(hash({}), plain);
  EXPECT_NE(hash({"trainer.seed=2"}), plain);
  EXPECT_NE(hash({"env.grid_length=10.000001"}), plain);
  EXPECT_NE(hash({"policy.tagger.model.activation=tanh"}), plain);
}

}  // namespace
}  // namespace wd::test
