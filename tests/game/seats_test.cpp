// seats_test.cpp: policies over any runs of agents: every agent sees, does and receives what it would if each
// role had one policy.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support.h"
#include "wd/error.h"
#include "wd/game.h"
#include "wd/trainer.h"

namespace wd::seats_test {
namespace {

constexpr int kSteps = 12, kReplicas = 5;

// Chooses by the agent's id, the replica and the step, whoever its policy is.
class ById : public Player {
 public:
  ActionUnit act(PolicyBuffers& buffers, int t, const Draw&) override {
    at::Tensor action = at::zeros_like(buffers.action[t]).contiguous();
    auto numbers = action.accessor<std::int32_t, 3>();
    for (std::int64_t e = 0; e < numbers.size(0); ++e)
      for (std::int64_t slot = 0; slot < numbers.size(1); ++slot)
        for (std::int64_t h = 0; h < numbers.size(2); ++h) {
          const std::int64_t id = buffers.agent[static_cast<std::size_t>(slot)];
          const std::int64_t choices = buffers.action_space.heads[static_cast<std::size_t>(h)];
          numbers[e][slot][h] = static_cast<std::int32_t>((7 * id + 3 * t + 5 * e + h) % choices);
        }
    buffers.action[t].copy_(action);
    return ActionUnit::kEnvironment;
  }
};

// The rows of every agent by id, from the buffers of whichever policy acts for it: [rows, E, ...] each.
std::vector<at::Tensor> by_id(const Trajectory& trajectory, const at::Tensor PolicyBuffers::* field) {
  std::vector<at::Tensor> all(static_cast<std::size_t>(trajectory.spec().num_agents()));
  for (const PolicyBuffers& buffers : trajectory.policies())
    for (std::size_t slot = 0; slot < buffers.agent.size(); ++slot)
      if ((buffers.*field).defined())
        all[static_cast<std::size_t>(buffers.agent[slot])] =
            (buffers.*field).select(2, static_cast<std::int64_t>(slot));
  return all;
}

Game play(const Environment& environment, RolloutShape shape) {
  shape.steps = kSteps;
  Game game(environment, {.num_envs = kReplicas, .seed = 3}, std::move(shape));
  for (std::size_t p = 0; p < game.trajectory().policies().size(); ++p) game.add(std::make_unique<ById>());
  game.begin();
  for (int t = 0; t < kSteps; ++t) {
    game.act(t, {});
    game.step(t);
  }
  return game;
}

struct Case {
  const char *name, *env;
  std::vector<std::string> settings;
  std::vector<Seat> seats;
  std::size_t policies;
  ObservationStorage storage = {};
};

class Seats : public testing::TestWithParam<Case> {};

TEST_P(Seats, GiveEveryAgentTheRowsOfARoleOfItsOwn) {
  const Case& of = GetParam();
  const Experiment setup = make_setup(of.env, of.settings);
  const Spec spec = setup.environment->spec();
  const Game expected = play(*setup.environment, RolloutShape::of_roles(spec, kReplicas, {}, of.storage));
  RolloutShape shape{.spec = spec, .cast = {{}, of.seats}, .num_envs = kReplicas, .storage = of.storage};
  for (std::size_t p = 0; p < of.policies; ++p) shape.cast.policies.push_back({concat("p", p)});
  const Game game = play(*setup.environment, std::move(shape));
  for (const auto field :
       {&PolicyBuffers::reward, &PolicyBuffers::active, &PolicyBuffers::agent_terminated}) {
    const std::vector<at::Tensor> a = by_id(expected.trajectory(), field),
                                  b = by_id(game.trajectory(), field);
    for (std::size_t id = 0; id < a.size(); ++id) EXPECT_TRUE(at::equal(a[id], b[id])) << "agent " << id;
  }
  const std::vector<at::Tensor> saw = by_id(expected.trajectory(), &PolicyBuffers::observation),
                                sees = by_id(game.trajectory(), &PolicyBuffers::observation);
  for (std::size_t id = 0; id < saw.size(); ++id) EXPECT_TRUE(at::equal(saw[id], sees[id])) << "agent " << id;
  EXPECT_TRUE(at::equal(expected.replicas().blocks(), game.replicas().blocks()));
}

INSTANTIATE_TEST_SUITE_P(
    Games, Seats,
    testing::Values(Case{"interleaved",
                         "tag_gridworld",
                         {"env.num_taggers=4"},
                         {{0, 0, 1, 0}, {0, 1, 1, 1}, {0, 2, 1, 0}, {0, 3, 1, 1}, {1, 4, 1, 2}},
                         3},
                    Case{"part_of_a_role_and_another_role",
                         "tag_gridworld",
                         {"env.num_taggers=7"},
                         {{0, 0, 5, 0}, {0, 5, 2, 1}, {1, 7, 1, 0}},
                         2},
                    Case{
                        "many_runs",
                        "tag_continuous",
                        {"env.num_taggers=3", "env.num_runners=9"},
                        {{0, 0, 1, 0}, {0, 1, 2, 1}, {1, 3, 3, 0}, {1, 6, 1, 2}, {1, 7, 4, 1}, {1, 11, 1, 2}},
                        3},
                    Case{"bfloat16",
                         "tag_continuous",
                         {"env.num_taggers=3", "env.num_runners=9"},
                         {{0, 0, 2, 1}, {0, 2, 1, 0}, {1, 3, 4, 1}, {1, 7, 5, 0}},
                         2,
                         {ObservationType::kBfloat16, false}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(SeatFaults, AreNamed) {
  const Experiment setup = make_setup("tag_gridworld", {"env.num_taggers=4"});
  const auto fault = [&](std::vector<Seat> seats) {
    return usage_error_of([&] {
      policy_layouts({.spec = setup.environment->spec(), .cast = {{{"a"}, {"b"}}, std::move(seats)}});
    });
  };
  EXPECT_EQ(fault({{0, 0, 4, 0}, {1, 4, 1, 1}}), "");
  EXPECT_EQ(fault({{0, 0, 4, 0}}), "the seats are of 4 agents, and there are 5");
  EXPECT_EQ(fault({{0, 0, 3, 0}, {1, 4, 1, 1}}), "the seats leave out agent 3, or name it twice");
  EXPECT_EQ(fault({{0, 0, 4, 0}, {1, 4, 1, 0}}), "policy 'b' acts for no agent");
}

TEST(SeatFaults, MoreRunsThanAStepHasRoomFor) {
  const Experiment setup = make_setup("tag_continuous", {"env.num_taggers=40", "env.num_runners=2"});
  std::vector<Seat> seats;
  for (int i = 0; i < 40; ++i) seats.push_back({0, i, 1, i % 2});
  seats.push_back({1, 40, 2, 0});
  EXPECT_EQ(usage_error_of([&] {
              policy_layouts({.spec = setup.environment->spec(), .cast = {{{"a"}, {"b"}}, std::move(seats)}});
            }),
            "the policies act for 41 runs of agents, and 32 are the most");
}

TEST(Sides, AreCalledByRoleOrByPolicy) {
  const Experiment setup = make_setup("tag_gridworld", {"env.num_taggers=4"});
  const auto names = [&](std::vector<Seat> seats) {
    std::vector<std::string> all;
    for (const GameSide& side : sides_of(setup.environment->spec(), seats, {"a", "b"}))
      all.push_back(concat(side.name, " ", side.num_agents));
    return all;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({{0, 0, 4, 0}, {1, 4, 1, 0}}), (Names{"tagger 4", "runner 1"}));
  EXPECT_EQ(names({{0, 0, 1, 0}, {0, 1, 2, 1}, {0, 3, 1, 0}, {1, 4, 1, 1}}),
            (Names{"a 2", "b.tagger 2", "runner 1"}));
}

}  // namespace
}  // namespace wd::seats_test
