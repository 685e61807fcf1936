// tag_continuous_test.cpp: rules that a comparison of whole episodes rarely covers: ties, limits, several
// tags at once, large crowds.
#include "envs/tag_continuous.cu"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/envs/one_replica.h"

namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using Params = TagContinuous::Params;
using Replica = wd::testing::OneReplica<TagContinuous>;

Params params(int taggers, int runners) {
  Params p;
  p.num_taggers = taggers;
  p.num_runners = runners;
  return p;
}

Params nearest(int taggers, int runners, int observed) {
  Params p = params(taggers, runners);
  p.use_full_observation = false;
  p.num_other_agents_observed = observed;
  return p;
}

TEST(TagContinuous, StartsAnywhereInOneOfFourDirections) {
  Replica replica(params(1000, 1000));
  std::set<float> directions(replica.field<float>("direction").begin(),
                             replica.field<float>("direction").end());
  EXPECT_THAT(directions,
              ElementsAre(0.0f, static_cast<float>(wd::kPiDouble / 2), static_cast<float>(wd::kPiDouble),
                          static_cast<float>(wd::kPiDouble * 3 / 2)));
  for (const char* name : {"x", "y"}) {
    const auto places = replica.field<float>(name);
    EXPECT_GE(*std::ranges::min_element(places), 0.0f);
    EXPECT_LT(*std::ranges::max_element(places), 10.0f);
    EXPECT_NEAR(std::accumulate(places.begin(), places.end(), 0.0) / 2000, 5.0, 0.35);
  }
  EXPECT_THAT(replica.field<float>("speed"), Each(0.0f));
  EXPECT_THAT(replica.field<int>("in_game"), Each(1));
}

TEST(TagContinuous, ChoicesAreNoneThenEvenlySpacedLevels) {
  Params p = params(1, 4);
  p.num_acceleration_levels = 3;
  p.min_acceleration = 0.25f;
  p.max_acceleration = 0.75f;
  Replica replica(p);
  replica.step({{0, 0}, {1, 0}, {2, 0}, {3, 0}, {0, 10}});
  EXPECT_THAT(replica.field<float>("speed"), ElementsAre(0.0f, 0.25f, 0.5f, 0.75f, 0.0f));
  EXPECT_THAT(replica.field<float>("acceleration"), ElementsAre(0.0f, 0.25f, 0.5f, 0.75f, 0.0f));
}

TEST(TagContinuous, TopSpeedEndsAcceleration) {
  Params p = params(1, 1);
  p.skill_level_tagger = 0.5f;
  Replica replica(p);
  replica.step({{10, 0}, {10, 0}});
  EXPECT_THAT(replica.field<float>("speed"), ElementsAre(0.5f, 1.0f));
  EXPECT_THAT(replica.field<float>("acceleration"), ElementsAre(0.0f, 0.0f));
}

TEST(TagContinuous, ACornerCostsOnce) {
  Params p = params(1, 1);
  p.edge_hit_penalty = -2.0f;
  Replica replica(p);
  replica.set<float>("x", {5.0f, 9.9f});
  replica.set<float>("y", {5.0f, 9.9f});
  replica.set<float>("direction", {0.0f, 0.25f * wd::kPi});
  replica.step({{0, 0}, {10, 0}});
  EXPECT_EQ(replica.reward(0), 0.0f);
  EXPECT_EQ(replica.reward(1), -2.0f);
  EXPECT_EQ(replica.field<float>("x")[1], 10.0f);
  EXPECT_EQ(replica.field<float>("y")[1], 10.0f);
}

TEST(TagContinuous, ReachIsStrictAndTheNearestTaggerIsPaidForEachTag) {
  Params p = params(2, 4);
  p.tagging_distance = 0.1f;  // a distance of 1 on the grid
  p.tag_reward_for_tagger = 3.0f;
  Replica replica(p);
  replica.set<float>("x", {4.0f, 6.0f, 3.5f, 5.0f, 4.9f, 4.5f});
  replica.set<float>("y", std::vector<float>(6, 5.0f));
  replica.step();
  // Tags at 3.5, 4.9 and 4.5. The runner at 5.0 is at distance 1 from both taggers, which is out of reach.
  EXPECT_EQ(replica.reward(0), 9.0f);
  EXPECT_EQ(replica.reward(1), 0.0f);
  EXPECT_EQ(replica.reward(2), -1.0f);
  EXPECT_EQ(replica.reward(3), 0.0f);
  EXPECT_THAT(replica.field<int>("in_game"), ElementsAre(1, 1, 0, 1, 0, 0));
  EXPECT_THAT(replica.field<int>("seen"), Each(1));
  EXPECT_TRUE(replica.left(2));
  EXPECT_FALSE(replica.left(3));
  EXPECT_FALSE(replica.terminated());
  EXPECT_EQ(replica.field<int>("tags")[0], 3);

  // Runners that left are not seen, not paid for, and not tagged again.
  replica.step();
  EXPECT_THAT(replica.field<int>("seen"), ElementsAre(1, 1, 0, 1, 0, 0));
  EXPECT_EQ(replica.reward(0), 0.0f);
  EXPECT_FALSE(replica.left(2));
}

TEST(TagContinuous, ATieGoesToTheTaggerWithTheLowerId) {
  Params p = params(2, 1);
  p.tagging_distance = 0.2f;
  Replica replica(p);
  replica.set<float>("x", {4.0f, 6.0f, 5.0f});
  replica.set<float>("y", {5.0f, 5.0f, 5.0f});
  replica.step();
  EXPECT_EQ(replica.reward(0), 1.0f);
  EXPECT_EQ(replica.reward(1), 0.0f);
  EXPECT_TRUE(replica.terminated());
}

TEST(TagContinuous, TheEndPaysRunnersStillInTheGame) {
  Params p = params(1, 2);
  p.episode_length = 2;
  p.tagging_distance = 0.1f;
  Replica replica(p);
  replica.set<float>("x", {5.0f, 9.0f, 6.5f});
  replica.set<float>("y", {5.0f, 9.0f, 5.0f});
  replica.set<float>("direction", {0.0f, 0.0f, 0.0f});
  replica.step();
  EXPECT_EQ(replica.reward(1), 0.0f);
  replica.step({{10, 0}, {0, 0}, {0, 0}});
  EXPECT_EQ(replica.reward(1), 1.0f);
  EXPECT_EQ(replica.reward(2), -1.0f);  // tagged on the last step
  EXPECT_TRUE(replica.terminated());
  EXPECT_FALSE(replica.truncated());
}

TEST(TagContinuous, NeighborsAreOrderedByDistanceThenId) {
  Replica replica(nearest(1, 5, 6));
  replica.set<float>("x", {5.0f, 7.0f, 6.0f, 4.0f, 5.0f, 9.0f});
  replica.set<float>("y", {5.0f, 5.0f, 5.0f, 5.0f, 4.0f, 5.0f});
  replica.set<int>("in_game", {1, 1, 1, 1, 1, 0});
  replica.step();
  const std::vector<float> row = replica.observation(0);
  const float unit = 1.0f / (10.0f * std::sqrt(2.0f));
  // Agents 2, 3 and 4 tie, agent 5 is out of the game, and there are no further agents.
  const std::vector<float> x = {1.0f, -1.0f, 0.0f, 2.0f, 0.0f, 0.0f};
  for (std::size_t k = 0; k < x.size(); ++k) EXPECT_NEAR(row[k], x[k] * unit, 1e-6) << k;
  EXPECT_THAT(std::vector(row.begin() + 36, row.begin() + 42), ElementsAre(1, 1, 1, 1, 0, 0));
  EXPECT_FLOAT_EQ(row[42], 0.01f);
  EXPECT_THAT(replica.observation(5), Each(0.0f));
}

TEST(TagContinuous, FullObservationHidesPlacesFromThoseOutOfTheGame) {
  Replica replica(params(1, 2));
  replica.set<int>("in_game", {1, 1, 0});
  replica.step();
  const std::vector<float> row = replica.observation(2);
  EXPECT_THAT(std::vector(row.begin(), row.begin() + 10), Each(0.0f));
  EXPECT_THAT(std::vector(row.begin() + 10, row.end()), ElementsAre(1, 0, 1, 1, 0));
}

// A brute-force search finds the same neighbors, for crowds of several batches and for sizes around batch
// limits.
class Crowds : public testing::TestWithParam<int> {};
TEST_P(Crowds, NeighborsAreTheNearest) {
  constexpr int kObserved = 9;
  const int agents = GetParam();
  Replica replica(nearest(2, agents - 2, std::min(kObserved, agents)));
  replica.step();
  const auto x = replica.field<float>("x"), y = replica.field<float>("y");
  const auto distance = [&](std::size_t i, std::size_t j) {
    return std::sqrt((x[i] - x[j]) * (x[i] - x[j]) + (y[i] - y[j]) * (y[i] - y[j]));
  };
  for (std::size_t i = 0; i < x.size(); i += 1 + x.size() / 50) {
    std::vector<std::size_t> others;
    for (std::size_t j = 0; j < x.size(); ++j)
      if (j != i) others.push_back(j);
    std::ranges::stable_sort(others, {}, [&](std::size_t j) { return distance(i, j); });
    const std::vector<float> row = replica.observation(static_cast<int>(i));
    for (std::size_t k = 0; k < std::min<std::size_t>(kObserved, others.size()); ++k) {
      EXPECT_NEAR(row[k], (x[others[k]] - x[i]) / (10.0f * std::sqrt(2.0f)), 1e-6)
          << "agent " << i << ", slot " << k;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, Crowds, testing::Values(3, 8, 63, 64, 65, 127, 128, 129, 2000));

TEST(TagContinuous, OrderOfPhasesDoesNotMatter) {
  Params p = params(4, 9);
  p.grid_length = 3.0f;
  p.tagging_distance = 0.08f;
  p.edge_hit_penalty = -0.1f;
  wd::testing::expect_order_does_not_matter<TagContinuous>(p, 11, 2, 40);
  p.use_full_observation = false;
  p.num_other_agents_observed = 5;
  wd::testing::expect_order_does_not_matter<TagContinuous>(p, 11, 2, 40);
}

TEST(TagContinuous, ParametersThatContradictEachOtherAreRefused) {
  const auto spec_of = [](Params p) { return [p] { TagContinuous::spec(p); }; };
  EXPECT_THAT(
      spec_of(nearest(2, 3, 6)),
      ThrowsMessage<wd::UsageError>(HasSubstr("env.num_other_agents_observed = 6: must be at most 5")));
  Params p;
  p.num_other_agents_observed = 1000;  // ignored with full observation
  EXPECT_EQ(TagContinuous::spec(p).num_agents(), p.num_taggers + p.num_runners);
  p.min_acceleration = 2.0f;
  EXPECT_THAT(spec_of(p), ThrowsMessage<wd::UsageError>(HasSubstr("env.min_acceleration = 2")));
  p = {};
  p.min_turn = 3.0f;
  EXPECT_THAT(spec_of(p), ThrowsMessage<wd::UsageError>(HasSubstr("env.min_turn = 3")));
}

}  // namespace
