// library_test.cpp: wd::autoscale called from a user's program, which is this one. Its probes are copies of
// it that run this test.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "wd/autoscale.h"

namespace {

TEST(Autoscale, FromAProgramOfOnesOwn) {
  const std::filesystem::path cache = std::filesystem::path(testing::TempDir()) / "autoscale-library";
  std::filesystem::remove_all(cache);
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);

  const std::unique_ptr<wd::Environment> environment = wd::make_environment(wd::find_environment("cartpole"));
  const auto lookup = [&](const std::string&) {
    return wd::EnvironmentAccess{[&](wd::Fields& fields) { environment->describe(fields); },
                                 [&] { return environment->spec(); }};
  };
  wd::ConfigSources sources{.env = "cartpole"};
  for (const char* setting :
       {"trainer.num_envs=8", "trainer.train_batch_size=64", "trainer.device=cpu", "autoscale.max_envs=32",
        "autoscale.max_seconds=60", "autoscale.probe_seconds=0.05"})
    sources.overrides.push_back(wd::parse_override(setting));
  wd::Config config = wd::load_config(sources, lookup);
  const wd::Autoscaled scaled = wd::autoscale(config, *environment);
  sources.overrides.insert(sources.overrides.end(), scaled.settings.begin(), scaled.settings.end());
  config = wd::load_config(sources, lookup);

  EXPECT_FALSE(scaled.cached);
  EXPECT_EQ(scaled.result.start.num_envs, 8);
  EXPECT_GE(scaled.result.start.rollout_steps, 8);  // or what gamma and lambda require
  EXPECT_EQ(config.trainer.num_envs, scaled.result.chosen.num_envs);
  EXPECT_EQ(config.trainer.train_batch_size, scaled.result.chosen.batch());
  EXPECT_LE(config.trainer.num_envs, 32);
  EXPECT_GE(scaled.result.trials.size(), 2u);
  for (const wd::scaling::Trial& one : scaled.result.trials)
    EXPECT_TRUE(one.outcome.kind == wd::scaling::Kind::kFits ||
                one.outcome.kind == wd::scaling::Kind::kCutShort);

  const wd::Config before = wd::load_config(
      {.env = "cartpole", .overrides = {sources.overrides.begin(), sources.overrides.begin() + 6}}, lookup);
  const wd::Autoscaled again = wd::autoscale(before, *environment);
  EXPECT_TRUE(again.cached);
  EXPECT_EQ(again.result, scaled.result);
}

}  // namespace
