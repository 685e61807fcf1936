// sweep_test.cpp: the values of a sweep, and invalid sweeps.
#include "src/bench/sweep.h"

#include <gmock/gmock.h>

#include "wd/error.h"

namespace wd::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(SweepTest, RangesDouble) {
  const Sweep sweep = parse_sweep("num_envs=64..8192");
  EXPECT_EQ(sweep.key, "num_envs");
  EXPECT_THAT(sweep.values, ElementsAre("64", "128", "256", "512", "1024", "2048", "4096", "8192"));
  EXPECT_THAT(parse_sweep("rollout_steps=10..200").values, ElementsAre("10", "20", "40", "80", "160", "200"));
  EXPECT_THAT(parse_sweep("num_envs=7..7").values, ElementsAre("7"));
  EXPECT_THAT(parse_sweep("num_envs=1k..2k").values, ElementsAre("1000", "2000"));
}

TEST(SweepTest, ListsAreTakenAsTheyAre) {
  EXPECT_THAT(parse_sweep("mode=env,train").values, ElementsAre("env", "train"));
  EXPECT_THAT(parse_sweep("trainer.threads=1").values, ElementsAre("1"));
}

TEST(SweepTest, KeysWithoutASectionAreTheEnvironments) {
  EXPECT_EQ(parse_sweep("num_runners=5,10").key, "env.num_runners");
  EXPECT_EQ(parse_sweep("policy.tagger.lr=1e-3,1e-4").key, "policy.tagger.lr");
}

TEST(SweepTest, RefusesWhatIsNone) {
  for (const char* const bad :
       {"num_envs", "=1..2", "num_envs=", "num_envs=8..4", "num_envs=0..4", "num_envs=a..b", "num_envs=1..",
        "num_envs=1,,2", "num_envs=1,2,", "num_envs=4,4"}) {
    try {
      parse_sweep(bad);
      ADD_FAILURE() << bad;
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string("--sweep ") + bad + ": "));
    }
  }
}

TEST(SweepTest, CombinationsVaryTheLastSweepFastest) {
  EXPECT_THAT(combinations({{"a", {"1", "2"}}, {"b", {"x", "y"}}}),
              ElementsAre(ElementsAre("1", "x"), ElementsAre("1", "y"), ElementsAre("2", "x"),
                          ElementsAre("2", "y")));
  const Sweep long_one{"a", std::vector<std::string>(100, "1")};
  EXPECT_THROW(combinations({long_one, long_one}), UsageError);
}

}  // namespace
}  // namespace wd::bench
