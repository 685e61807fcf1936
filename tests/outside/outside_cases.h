// outside_cases.h: an environment whose replicas are elsewhere, on any device, against the same game as an
// environment of ours on the CPU: the buffers must have the same bits.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/outside/counted.h"
#include "wd/game.h"
#include "wd/vector_env.h"

namespace wd::counted {

inline constexpr int kReplicas = 6, kSteps = 50;

struct Case {
  const char* name;
  AtTimeLimit at_time_limit = AtTimeLimit::kTruncates;
  ObservationType type = ObservationType::kFloat32;
  ActionUnit unit = ActionUnit::kEnvironment;
  bool by_seats = true;  // runs of agents with gaps between their rows
  ResetMode reset = ResetMode::kRandom;
  std::uint32_t first_replica = 0;
};

inline std::vector<Case> cases() {
  using enum AtTimeLimit;
  using enum ObservationType;
  return {{"rows"},
          {.name = "roles", .by_seats = false},
          {.name = "terminates", .at_time_limit = kTerminates, .unit = ActionUnit::kHalfWidths},
          {.name = "bfloat16", .type = kBfloat16},
          {.name = "bfloat16_half_widths",
           .type = kBfloat16,
           .unit = ActionUnit::kHalfWidths,
           .first_replica = 6},
          {.name = "fixed", .reset = ResetMode::kFixed},
          {.name = "pool", .reset = ResetMode::kPool, .first_replica = 3}};
}

inline ReplicasOptions options_of(const Case& of, Device device) {
  return {.num_envs = kReplicas,
          .first_replica = of.first_replica,
          .seed = 5,
          .reset = of.reset,
          .pool_size = of.reset == ResetMode::kPool ? 3u : 0u,
          .staggered = true,
          .device = device};
}

inline wd::Game play(const Environment& environment, const Case& of, Device device) {
  const Spec spec = environment.spec();
  RolloutShape shape = RolloutShape::of_roles(spec, kReplicas, device, {of.type});
  if (of.by_seats)
    shape = {.spec = spec,
             .cast = {{{"a"}, {"b"}, {"c"}, {"d"}},
                      {{0, 0, 1, 0}, {0, 1, 2, 1}, {0, 3, 1, 0}, {1, 4, 1, 2}, {1, 5, 1, 3}, {1, 6, 1, 2}}},
             .num_envs = kReplicas,
             .device = device,
             .storage = {of.type}};
  shape.steps = kSteps;
  for (CastPolicy& policy : shape.cast.policies) policy.state_size = 1;  // for `restarted`
  wd::Game game(environment, options_of(of, device), std::move(shape));
  for (std::size_t p = 0; p < game.trajectory().policies().size(); ++p)
    game.add(std::make_unique<RandomPlayer>(device, p, of.unit));
  game.begin();
  for (int t = 0; t < kSteps; ++t) {
    game.act(t, {.seed = 3, .step = static_cast<std::uint64_t>(t)});
    game.step(t);
  }
  return game;
}

// Every tensor of two rollouts by name.
inline void expect_same_rows(const Trajectory& expected, const Trajectory& found) {
  std::vector<at::Tensor> all;
  expected.each_buffer([&](const BufferField&, const at::Tensor& tensor) { all.push_back(tensor); });
  std::size_t k = 0;
  found.each_buffer([&](const BufferField& field, const at::Tensor& tensor) {
    EXPECT_TRUE(at::equal(all.at(k), tensor.cpu())) << field.name << ", buffer " << k;
    ++k;
  });
  EXPECT_EQ(k, all.size());
  EXPECT_TRUE(at::equal(expected.statistics(), found.statistics().cpu()));
  EXPECT_GT(expected.statistics().count_nonzero().item<int>(), 3);
}

inline void expect_same_rollout(const Case& of, Device device) {
  const std::unique_ptr<Environment> environment = ours(of.at_time_limit);
  const Outside outside(of.at_time_limit);
  const wd::Game expected = play(*environment, of, {}), found = play(outside, of, device);
  expect_same_rows(expected.trajectory(), found.trajectory());
  for (int e = 0; e < kReplicas; ++e) {
    const ReplicaHeader a = expected.replicas().header(e), b = found.replicas().header(e);
    EXPECT_EQ(std::vector({a.t, a.reset_pending, a.first_steps}),
              std::vector({b.t, b.reset_pending, b.first_steps}));
    EXPECT_EQ(a.episode, b.episode);
    const auto there = [&](const Replicas& replicas) {
      const at::Tensor block = replicas.blocks()[e].cpu();
      return replicas.in_game(static_cast<const std::byte*>(block.const_data_ptr()));
    };
    EXPECT_EQ(there(expected.replicas()), there(found.replicas()));
  }
  // The game had everything that is compared.
  const Trajectory& trajectory = expected.trajectory();
  EXPECT_GT(trajectory.terminated().sum().item<int>(), 3);
  EXPECT_GT(trajectory.truncated().sum().item<int>(), 0);
  EXPECT_GT(trajectory.policies()[0].agent_terminated.sum().item<int>(), 3);
  const at::Tensor active = trajectory.policies()[0].active;
  EXPECT_GT(at::logical_and(active.slice(0, 0, kSteps) == 0, active.slice(0, 1) == 1).sum().item<int>(), 3);
}

// The three ways of a caller who brings the actions; two of them step some replicas alone.
inline void expect_same_vector_env(AutoReset mode, Device device) {
  const std::unique_ptr<Environment> environment = ours();
  const Outside outside;
  const Case of = {.name = "vector"};
  VectorEnv expected(*environment, options_of(of, {}), mode), found(outside, options_of(of, device), mode);
  const auto tensors = [](const VectorEnv& env) {
    std::vector<at::Tensor> all = {env.all().terminated, env.all().truncated, env.all().reset};
    for (const VectorEnv::RoleRows& role : env.roles())
      for (const at::Tensor& tensor :
           {role.observation, role.reward, role.active, role.terminated, role.action_mask})
        if (tensor.defined()) all.push_back(tensor.cpu());
    return all;
  };
  expected.restart(8);
  found.restart(8);
  at::manual_seed(1);
  for (int t = 0; t < kSteps; ++t) {
    for (std::size_t r = 0; r < expected.roles().size(); ++r) {
      const at::Tensor action = expected.roles()[r].action;
      action.copy_(r == 0 ? at::randint(0, 2, action.sizes()) : at::rand(action.sizes()));
      found.roles()[r].action.copy_(action);
    }
    expected.step();
    found.step();
    const std::vector<at::Tensor> a = tensors(expected), b = tensors(found);
    for (std::size_t k = 0; k < a.size(); ++k)
      ASSERT_TRUE(at::equal(a[k], b[k].cpu())) << "step " << t << ", tensor " << k;
    const at::Tensor ended = at::logical_or(expected.all().terminated, expected.all().truncated);
    for (std::size_t r = 0; mode == AutoReset::kSameStep && r < expected.roles().size(); ++r) {
      const at::Tensor last = expected.roles()[r].last_observation.index({ended});
      ASSERT_TRUE(at::equal(last, found.roles()[r].last_observation.cpu().index({ended}))) << "step " << t;
    }
    if (mode == AutoReset::kDisabled && t % 3 == 0) {
      expected.reset(ended);
      found.reset(ended);
    }
  }
}

}  // namespace wd::counted
