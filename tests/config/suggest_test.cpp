// suggest_test.cpp: nearest names, and none if no name is near; values of schedules.
#include "src/base/suggest.h"

#include <gtest/gtest.h>

#include "wd/params.h"

namespace wd {
namespace {

TEST(Suggest, Distance) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("num_evns", "num_envs"), 1);  // swap of adjacent characters
  EXPECT_EQ(edit_distance("PPO", "ppo"), 0);
}

TEST(Suggest, NearestName) {
  const std::vector<std::string> names = {"num_envs", "num_episodes", "lr", "seed"};
  EXPECT_EQ(nearest_name("num_env", names), "num_envs");
  EXPECT_EQ(nearest_name("numepisodes", names), "num_episodes");
  EXPECT_EQ(nearest_name("LR", names), "lr");
  EXPECT_EQ(nearest_name("xyzzy", names), "");
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name(std::string(1'000'000, 'a'), names), "");
  EXPECT_EQ(suggestion("sed", names), "; did you mean \"seed\"?");
  EXPECT_EQ(suggestion("xyzzy", names), "; known: num_envs, num_episodes, lr, seed");
}

TEST(Schedule, ConstantAndPiecewiseLinear) {
  EXPECT_EQ(Schedule(0.5).at(1e12), 0.5);
  Schedule schedule;
  schedule.points = {{1000, 0.1}, {2000, 0.05}, {2000, 1.0}, {3000, 2.0}};
  EXPECT_EQ(schedule.at(0), 0.1);
  EXPECT_EQ(schedule.at(1000), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(1500), 0.075);
  EXPECT_EQ(schedule.at(2000), 1.0);  // two points at the same step: a jump
  EXPECT_DOUBLE_EQ(schedule.at(2500), 1.5);
  EXPECT_EQ(schedule.at(1e15), 2.0);
}

}  // namespace
}  // namespace wd
