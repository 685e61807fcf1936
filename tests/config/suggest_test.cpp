// suggest_test.cpp: nearest names, and none if no name is near.
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
  const std::vector<std::string> longer = {"algorithm", "agents_per_side", "agents_per_team"};
  EXPECT_EQ(nearest_name("algo", longer), "algorithm") << "the only one that begins so";
  EXPECT_EQ(nearest_name("agents", longer), "");
  EXPECT_EQ(nearest_name("alg", longer), "") << "too short";
  EXPECT_EQ(nearest_name("xyzzy", names), "");
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name(std::string(1'000'000, 'a'), names), "");
  EXPECT_EQ(suggestion("sed", names), "; did you mean \"seed\"?");
  EXPECT_EQ(suggestion("xyzzy", names), "; known: num_envs, num_episodes, lr, seed");
}

}  // namespace
}  // namespace wd
