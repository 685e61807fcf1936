// leaving_test.cpp: the rows of agents that leave the game, come back, or come late, for both rules of
// rewards.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "wd/detail/cpu_executor.h"
#include "wd/replicas.h"
#include "wd/trajectory.h"

namespace wd {

// Agent 0 leaves in step 3, agent 1 leaves in step 2 and is back after step 4, agent 2 comes in step 3. In
// step t, agent i is paid 100 (i + 1) + t.
struct Comings {
  struct Params {
    bool paid = false;
    void describe(auto&&) {}
  };
  struct State {
    PerReplica<int> t;
    void describe(auto&& field) { field("t", t); }
  };
  static Spec spec(const Params& p) {
    return {.roles = {{.name = "others",
                       .count = 1,
                       .observation = {{"x", 1}},
                       .action = ActionSpace::discrete({2})},
                      {.name = "player",
                       .count = 3,
                       .observation = {{"x", 1}},
                       .action = ActionSpace::discrete({2}),
                       .action_mask = true,
                       .paid_after_leaving = p.paid}},
            .time_limit = 6};
  }
  static bool in_game(const Params&, const State& s, int agent) {
    const int t = s.t;
    return agent == 0 || (agent == 1 && t < 3) || (agent == 2 && (t < 2 || t >= 4)) || (agent == 3 && t >= 3);
  }
  static void reset(auto& team, const Params&, State& s, Random) {
    team.once([&] { s.t = 0; });
  }
  static void step(auto& team, const Params&, State& s, Actions, Random, Outcome& out) {
    const int t = team.t();
    team.each(4, [&](int i) { out.reward(i) = static_cast<float>(100 * i + t); });
    team.once([&] { s.t = t; });
  }
  // Agents out of the game have no legal choice.
  static void observe(auto& team, const Params& p, const State& s, Observations obs) {
    team.each(4, [&](int i) {
      obs(i, 0) = 0.0f;
      if (i == 0) return;
      for (int k = 0; k < 2; ++k) obs.action_mask(i)[k] = in_game(p, s, i) && k == 1 ? 1 : 0;
    });
  }
};

namespace {

using testing::ElementsAre;

template <bool kPaid>
struct Rule : Comings {
  static Spec spec(const Params&) { return Comings::spec({kPaid}); }
};

// One replica: an episode of 6 steps, the reset, and the first step of the next one.
struct ComingsPlayed {
  explicit ComingsPlayed(const Environment& of)
      : environment(of), replicas(of, {.notes_dropped = true}), trajectory(shape_of(of.spec())) {
    replicas.step(trajectory.first_rows());
    for (int t = 0; t < kSteps; ++t) {
      replicas.step(trajectory.rows(t));
      if (t == 5) last = replicas.dropped().clone();
    }
  }

  static RolloutShape shape_of(const Spec& spec) {
    RolloutShape shape = RolloutShape::of_roles(spec, 1);
    shape.steps = kSteps;
    for (CastPolicy& policy : shape.cast.policies) policy.state_size = 1;  // for `restarted`
    return shape;
  }

  // The numbers of one agent of the role, step by step.
  std::vector<int> of(at::Tensor PolicyBuffers::* field, int agent) const {
    const at::Tensor row =
        (trajectory.policies()[1].*field).select(2, agent).flatten().to(at::kInt).contiguous();
    return {row.const_data_ptr<int>(), row.const_data_ptr<int>() + row.numel()};
  }
  DroppedReward dropped(int agent) const {
    return reinterpret_cast<const DroppedReward*>(last.const_data_ptr<std::int32_t>())[1 + agent];
  }

  static constexpr int kSteps = 8;
  const Environment& environment;
  Replicas replicas;
  Trajectory trajectory;
  at::Tensor last;  // what was dropped by the end of the episode
};

void expect_dropped(const DroppedReward& one, float amount, int step, int left) {
  EXPECT_EQ(one.amount, amount);
  EXPECT_EQ(one.step, step);
  EXPECT_EQ(one.left, left);
}

TEST(Leaving, LaterRewardsAreDropped) {
  const detail::CpuEnvironment<Rule<false>> environment("comings");
  const ComingsPlayed played(environment);
  EXPECT_THAT(played.of(&PolicyBuffers::reward, 0), ElementsAre(101, 102, 103, 0, 0, 0, 0, 101));
  EXPECT_THAT(played.of(&PolicyBuffers::active, 0), ElementsAre(1, 1, 1, 0, 0, 0, 0, 1, 1));
  EXPECT_THAT(played.of(&PolicyBuffers::agent_terminated, 0), ElementsAre(0, 0, 1, 0, 0, 0, 0, 0));
  EXPECT_THAT(played.of(&PolicyBuffers::restarted, 0), ElementsAre(1, 0, 0, 0, 0, 0, 0, 1, 0));
  EXPECT_THAT(played.of(&PolicyBuffers::reward, 1), ElementsAre(201, 202, 0, 0, 205, 206, 0, 201));
  EXPECT_THAT(played.of(&PolicyBuffers::active, 1), ElementsAre(1, 1, 0, 0, 1, 1, 1, 1, 1));
  EXPECT_THAT(played.of(&PolicyBuffers::agent_terminated, 1), ElementsAre(0, 1, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(played.of(&PolicyBuffers::restarted, 1), ElementsAre(1, 0, 0, 0, 1, 0, 0, 1, 0));
  EXPECT_THAT(played.of(&PolicyBuffers::reward, 2), ElementsAre(0, 0, 0, 304, 305, 306, 0, 0));
  EXPECT_THAT(played.of(&PolicyBuffers::active, 2), ElementsAre(0, 0, 0, 1, 1, 1, 1, 0, 0));
  expect_dropped(played.dropped(-1), 0.0f, 0, 0);
  expect_dropped(played.dropped(0), 106.0f, 6, 3);
  expect_dropped(played.dropped(1), 204.0f, 4, 2);
  expect_dropped(played.dropped(2), 303.0f, 3, 0);
}

// From the step before leaving to the end of the episode it is one stretch, whether the agent comes back or
// not.
TEST(Leaving, RowsGoOnToCountIfRewardsArePaid) {
  const detail::CpuEnvironment<Rule<true>> environment("comings");
  const ComingsPlayed played(environment);
  EXPECT_THAT(played.of(&PolicyBuffers::reward, 0), ElementsAre(101, 102, 103, 104, 105, 106, 0, 101));
  EXPECT_THAT(played.of(&PolicyBuffers::reward, 1), ElementsAre(201, 202, 203, 204, 205, 206, 0, 201));
  for (const int agent : {0, 1}) {
    EXPECT_THAT(played.of(&PolicyBuffers::active, agent), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 1));
    EXPECT_THAT(played.of(&PolicyBuffers::agent_terminated, agent), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0));
    EXPECT_THAT(played.of(&PolicyBuffers::restarted, agent), ElementsAre(1, 0, 0, 0, 0, 0, 0, 1, 0));
    expect_dropped(played.dropped(agent), 0.0f, 0, 0);
  }
  // It has not played before step 4.
  EXPECT_THAT(played.of(&PolicyBuffers::reward, 2), ElementsAre(0, 0, 0, 304, 305, 306, 0, 0));
  EXPECT_THAT(played.of(&PolicyBuffers::active, 2), ElementsAre(0, 0, 0, 1, 1, 1, 1, 0, 0));
  EXPECT_THAT(played.of(&PolicyBuffers::restarted, 2), ElementsAre(1, 0, 0, 1, 0, 0, 0, 1, 0));
  expect_dropped(played.dropped(2), 303.0f, 3, 0);
}

TEST(Leaving, InGameIsWhatTheEnvironmentSaysForBothRules) {
  const detail::CpuEnvironment<Rule<true>> environment("comings");
  ComingsPlayed played(environment);
  played.replicas.write(0, R"({"t": 3})");
  const at::Tensor block = played.replicas.blocks()[0];
  EXPECT_THAT(played.replicas.in_game(static_cast<const std::byte*>(block.const_data_ptr())),
              ElementsAre(1, 0, 0, 1));
}

// Nothing is learned from such a row, but something is drawn in it.
TEST(Leaving, AMaskThatForbidsEverythingAllowsEverythingWhereTheRowDoesNotCount) {
  const detail::CpuEnvironment<Rule<false>> dropped("comings");
  const detail::CpuEnvironment<Rule<true>> paid("comings");
  const auto mask = [](const ComingsPlayed& played, int agent, int t) {
    const at::Tensor row = played.trajectory.policies()[1].action_mask[t][0][agent];
    return std::pair(row[0].item<int>(), row[1].item<int>());
  };
  const ComingsPlayed one(dropped), other(paid);
  EXPECT_EQ(mask(one, 0, 2), std::pair(0, 1));
  EXPECT_EQ(mask(one, 0, 3), std::pair(1, 1));
  EXPECT_EQ(mask(other, 0, 3), std::pair(0, 0)) << "this row counts: the guard reports it";
  EXPECT_EQ(mask(other, 2, 0), std::pair(1, 1));
}

}  // namespace
}  // namespace wd
