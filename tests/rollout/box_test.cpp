// box_test.cpp: the continuous actions that an environment receives: a policy's actions are scaled to finite
// bounds, all others are unchanged.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "src/replicas/random_play.h"
#include "wd/detail/cpu_executor.h"
#include "wd/policy.h"
#include "wd/replicas.h"

// An environment that records the actions it receives.
struct Boxes {
  struct Params {
    void describe(auto&&) {}
  };
  struct State {
    wd::PerAgent<float> first, second;
    void describe(auto&& field) { field("first", first), field("second", second); }
  };
  static wd::Spec spec(const Params&) {
    const float infinity = std::numeric_limits<float>::infinity();
    return {.roles = {{"closed", 2, {{"one"}}, wd::ActionSpace::box(2, -3.0f, 5.0f)},
                      {"open", 2, {{"one"}}, wd::ActionSpace::box(2, 0.0f, infinity)},
                      {"mixed", 2, {{"one"}}, wd::ActionSpace::box({{10.0f, 12.0f}, {-infinity, infinity}})}},
            .time_limit = 100};
  }
  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random) {
    team.each(6, [&](int i) { s.first[i] = s.second[i] = 0.0f; });
  }
  WD_FN static void step(auto& team, const Params&, State& s, wd::Actions a, wd::Random, wd::Outcome&) {
    team.each(6, [&](int i) {
      s.first[i] = a.continuous(i, 0);
      s.second[i] = a.continuous(i, 1);
    });
  }
  WD_FN static void observe(auto& team, const Params&, const State&, wd::Observations obs) {
    team.each(6, [&](int i) { obs(i, 0) = 1.0f; });
  }
};

namespace wd {
namespace {

constexpr int kBoxReplicas = 64;

struct Game {
  detail::CpuEnvironment<Boxes> environment{"boxes"};
  Replicas replicas{environment, {.num_envs = kBoxReplicas, .seed = 3}};
  Trajectory trajectory{{environment.spec(),
                         Cast::of_roles(environment.spec(), {"closed", "open", "mixed"}, {0, 1, 2}), 1,
                         kBoxReplicas}};

  Game() { replicas.step(trajectory.first_rows()); }
  PolicyBuffers& closed() { return trajectory.policies()[0]; }
  PolicyBuffers& open() { return trajectory.policies()[1]; }
  PolicyBuffers& mixed() { return trajectory.policies()[2]; }
  // [replicas, role's agents, components], as received by the environment.
  at::Tensor got(int first_agent) const {
    const at::Tensor all = at::empty({kBoxReplicas, 2, 2});
    for (int e = 0; e < kBoxReplicas; ++e) {
      int k = 0;
      for (const char* field : {"first", "second"}) {
        const std::vector<double> values = replicas.read(e, replicas.layout().field(field));
        for (int i = 0; i < 2; ++i)
          all[e][i][k] = static_cast<float>(values[static_cast<std::size_t>(first_agent + i)]);
        ++k;
      }
    }
    return all;
  }
};

void act(PolicyBuffers& buffers, int index, ContinuousDistribution distribution = kGaussianActions) {
  ModelSettings model;
  model.distribution = distribution;
  model.fc_dims = {4};
  model.initial_log_std = 0.5;
  Policy(buffers, model, index, 5, 64, {}).act(buffers, 0, {.seed = 5});
}

TEST(Box, APolicysActionsAreHalfWidthsWithinTheBounds) {
  Game game;
  act(game.closed(), 0);
  act(game.open(), 1);
  game.replicas.step(game.trajectory.rows(0));
  const at::Tensor drawn = game.closed().action[0], got = game.got(0);
  EXPECT_TRUE(at::equal(got, (1.0f + 4.0f * drawn).clamp(-3.0f, 5.0f)));
  EXPECT_GT((drawn > 1.0f).sum().item<int>(), 10)
      << "nothing is beyond a bound: the test shows less than it says";
  EXPECT_GT((drawn < -1.0f).sum().item<int>(), 10);
  EXPECT_EQ(got.min().item<float>(), -3.0f);
  EXPECT_EQ(got.max().item<float>(), 5.0f);
  EXPECT_NEAR(got.mean().item<float>(), 1.0f, 1.0f) << "the middle is where it begins";
  EXPECT_TRUE(at::equal(game.got(2), game.open().action[0])) << "without two finite bounds they are as drawn";
  EXPECT_LT(game.open().action[0].min().item<float>(), 0.0f);
}

TEST(Box, EachComponentHasItsOwnBounds) {
  Game game;
  act(game.mixed(), 2);
  game.replicas.step(game.trajectory.rows(0));
  const at::Tensor drawn = game.mixed().action[0], got = game.got(4);
  EXPECT_TRUE(at::equal(got.select(2, 0), (11.0f + drawn.select(2, 0)).clamp(10.0f, 12.0f)));
  EXPECT_TRUE(at::equal(got.select(2, 1), drawn.select(2, 1))) << "this one has no bounds";
}

TEST(Box, SquashedActionsNeverReachTheBounds) {
  Game game;
  act(game.closed(), 0, kSquashedGaussianActions);
  game.replicas.step(game.trajectory.rows(0));
  const at::Tensor drawn = game.closed().action[0], got = game.got(0);
  EXPECT_TRUE(at::equal(got, 1.0f + 4.0f * drawn)) << "nothing is cut off";
  EXPECT_GT(got.min().item<float>(), -3.0f);
  EXPECT_LT(got.max().item<float>(), 5.0f);
  EXPECT_GT(got.max().item<float>(), 4.0f) << "the test shows less than it says";
}

TEST(Box, WhatOthersPlayArrivesAsItIs) {
  Game game;
  act(game.closed(), 0);
  play_at_random({}, game.closed(), 0, 0, {.seed = 2});
  play_at_random({}, game.open(), 0, 0, {.seed = 2, .policy = 1});
  play_at_random({}, game.mixed(), 0, 0, {.seed = 2, .policy = 2});
  game.replicas.step(game.trajectory.rows(0));
  EXPECT_TRUE(at::equal(game.got(0), game.closed().action[0]));
  EXPECT_TRUE(at::equal(game.got(2), game.open().action[0]));
  EXPECT_GT(game.got(0).max().item<float>(), 4.0f) << "random players fill the bounds themselves";
  EXPECT_LE(game.got(0).max().item<float>(), 5.0f);
  const at::Tensor mixed = game.got(4);
  EXPECT_GE(mixed.select(2, 0).min().item<float>(), 10.0f);
  EXPECT_LE(mixed.select(2, 1).abs().max().item<float>(), 1.0f);
  game.closed().action.fill_(-7.25f);  // a scripted action, out of bounds
  game.replicas.step(game.trajectory.rows(0));
  EXPECT_TRUE(at::equal(game.got(0), at::full({kBoxReplicas, 2, 2}, -7.25f)));
}

TEST(Box, MoreComponentsThanRandomNumbersAreRefused) {
  const auto policy_of = [](int components) {
    Spec spec;
    spec.roles = {{"agent", 1, {{"one"}}, ActionSpace::box(components, -1.0f, 1.0f)}};
    spec.time_limit = 10;
    Trajectory trajectory({spec, Cast::of_roles(spec, {"agent"}, {0})});
    Policy(trajectory.policies()[0], {}, 0, 1, 64, {});
  };
  policy_of(256);
  try {
    policy_of(257);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "an action has 257 components; at most 256: give the rest to further agents");
  }
}

}  // namespace
}  // namespace wd
