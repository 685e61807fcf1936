// pairs_test.cpp: `wdtrain --env E --algorithm A` trains in every environment of the library by every
// algorithm whose actions fit, whatever configs/E.yaml says of another algorithm; where they do not, it
// says why.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/support.h"
#include "wd/environment.h"
#include "wd/trainer.h"

namespace wd {
namespace {

using testing::HasSubstr;

ConfigSources sources_of(const std::string& environment, const std::string& algorithm) {
  ConfigSources sources;
  sources.env = environment;
  sources.algorithm = algorithm;
  if (environment == "tag_continuous")
    sources.overrides = {parse_override("env.num_runners=8")};  // or minutes
  sources.search = {std::filesystem::path(std::getenv("WD_SOURCE_DIR")) / "configs"};
  return sources;
}

// What is in the way, by what is known of algorithms and games; empty: nothing.
std::string obstacle(const Experiment& setup, const std::string& algorithm) {
  const auto is = [&](std::initializer_list<const char*> names) {
    return std::ranges::any_of(names, [&](const char* name) { return algorithm == name; });
  };
  const Spec& spec = setup.environment->spec();
  if (is({"BC"})) return "trainer.offline";
  for (const Role& role : spec.roles) {
    const bool continuous = role.action.components() > 0;
    if (continuous && is({"DQN", "PQN", "VDN", "QMIX", "PQN-VDN", "PQN-QMIX"})) return "continuous";
    if (!continuous && is({"DDPG", "TD3"})) return "are choices";
  }
  const bool has_state = std::ranges::any_of(spec.streams, [](const StreamSpec& stream) {
    return stream.of == StreamSpec::kReplica && stream.type == StreamSpec::kFloat32;
  });
  if (!has_state && is({"MAPPO", "QMIX", "PQN-QMIX"})) return "state of the game";
  return "";
}

class Pairs : public testing::TestWithParam<std::string> {};

TEST_P(Pairs, TrainOrSayWhyNot) {
  for (const std::string& algorithm : algorithm_names()) {
    SCOPED_TRACE(algorithm);
    const Experiment shipped = load_environment(sources_of(GetParam(), ""));
    const std::string expected = obstacle(shipped, algorithm);
    std::optional<Experiment> setup;
    const std::string error =
        usage_error_of([&] { setup.emplace(load_environment(sources_of(GetParam(), algorithm))); });
    if (!expected.empty()) {
      EXPECT_THAT(error, HasSubstr(expected));
      continue;
    }
    ASSERT_EQ(error, "");
    for (const PolicySettings& policy : setup->config.policies) {
      if (!policy.to_train) continue;
      EXPECT_EQ(policy.algorithm->name(), algorithm);
    }
    // The same algorithm as in the file: nothing changes. Another one: one line says what it leaves behind.
    const bool same = std::ranges::all_of(shipped.config.policies, [&](const PolicySettings& policy) {
      return !policy.to_train || policy.algorithm->name() == algorithm;
    });
    if (same) {
      EXPECT_EQ(setup->config.trainer, shipped.config.trainer);
    }
    for (PolicySettings& policy : setup->config.policies) policy.algorithm->learn_at_once();
    Trainer trainer(setup->config, *setup->environment, {});
    trainer.iterate();
    trainer.check();
  }
}

std::vector<std::string> environments() {
  std::vector<std::string> names;
  for (const EnvironmentRow& row : detail::environment_table()) names.push_back(row.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Library, Pairs, testing::ValuesIn(environments()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace wd
