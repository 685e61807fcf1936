// executor_cases.h: compares whole episodes of every bundled environment on the CPU executor and on another
// one, with the same actions: bits must be equal.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/base/selective_fields.h"
#include "tests/kernels/random_data.h"
#include "wd/error.h"
#include "wd/replicas.h"
#include "wd/trajectory.h"

namespace wd::parity {

inline constexpr int kSteps = 16;

// Sets numbers and flags of Params by name.
class Set : public SelectiveFields {
 public:
  explicit Set(std::map<std::string, double> values) : values_(std::move(values)) {}
  ~Set() override { EXPECT_TRUE(values_.empty()) << "the environment has no " << values_.begin()->first; }

  void operator()(const char* name, bool& value, const char*) override { take(name, value); }
  void operator()(const char* name, int& value, Range, const char*) override { take(name, value); }
  void operator()(const char* name, std::int64_t& value, Range, const char*) override { take(name, value); }
  void operator()(const char* name, float& value, Range, const char*) override { take(name, value); }
  void operator()(const char* name, double& value, Range, const char*) override { take(name, value); }
  void choice(const char* name, int& value, std::span<const char* const>, const char*) override {
    take(name, value);
  }

 private:
  template <typename T>
  void take(const char* name, T& value) {
    const auto found = values_.find(name);
    if (found == values_.end()) return;
    value = static_cast<T>(found->second);
    values_.erase(found);
  }

  std::map<std::string, double> values_;
};

struct Case {
  std::string name;
  std::string environment;
  std::map<std::string, double> params;
  int num_envs;
  ResetMode reset = ResetMode::kRandom;
  ObservationStorage stored = {};
  std::string starts = {};
};

inline std::unique_ptr<Environment> make(const Case& c) {
  std::unique_ptr<Environment> environment = make_environment(find_environment(c.environment));
  Set set(c.params);
  environment->describe(set);
  return environment;
}

inline std::vector<Case> cases() {
  std::vector<Case> all;
  for (const EnvironmentRow& row : detail::environment_table()) {
    all.push_back({std::string(row.name) + "_random", row.name, {}, 67});
    all.push_back({std::string(row.name) + "_fixed", row.name, {}, 3, ResetMode::kFixed});
    all.push_back({std::string(row.name) + "_pool", row.name, {}, 129, ResetMode::kPool});
    if (std::string_view(row.name) != "left_then_paid") continue;
    for (const char* const param : {"paid", "no_mask"})
      all.push_back({std::string(row.name) + "_" + param, row.name, {{param, 1.0}}, 67});
  }
  all.push_back({"cartpole_given", "cartpole", {}, 129, ResetMode::kGiven});
  all.back().starts = R"([{"x": 0.5}, {"theta": 0.1}, {"x": -0.5, "x_dot": 0.1}])";
  for (const double landmarks : {0.0, 300.0}) {
    const std::string name = "simple_tag_landmarks_" + std::to_string(static_cast<int>(landmarks));
    all.push_back({name, "simple_tag", {{"num_landmarks", landmarks}}, 7});
  }
  const std::string tag = "tag_continuous";
  using Params = std::map<std::string, double>;
  const Params game = {
      {"grid_length", 20.0}, {"tagging_distance", 0.05}, {"max_turn", 2.356}, {"min_turn", -2.356}};
  const auto with = [&](Params params) {
    params.insert(game.begin(), game.end());
    return params;
  };
  all.push_back({"tag_pair", tag, with({{"num_runners", 1}}), 33});
  all.push_back({"tag_block_full", tag, with({{"num_taggers", 5}, {"num_runners", 100}}), 7});
  const Params nearest = {{"use_full_observation", 0}, {"num_other_agents_observed", 10}};
  const auto sized = [&](int taggers, int runners) {
    Params params = with({{"num_taggers", taggers}, {"num_runners", runners}});
    params.insert(nearest.begin(), nearest.end());
    return params;
  };
  all.push_back({"tag_warp_nearest", tag, sized(5, 20), 33});
  all.push_back({"tag_block_nearest", tag, sized(5, 100), 7});
  // Shared memory per block: just above the default limit minus the kernel's own static memory, and far above
  // it.
  Params edge = sized(5, 128);
  edge["num_other_agents_observed"] = 9;
  all.push_back({"tag_almost_48_KiB", tag, edge, 2});
  all.push_back({"tag_120_KiB", tag, sized(5, 315), 2});
  Params many = sized(60, 1200);
  many["episode_length"] = 6;
  all.push_back({"tag_more_agents_than_threads", tag, many, 2});
  const std::size_t exact = all.size();
  for (std::size_t k = 0; k < exact; ++k) {
    all.push_back(all[k]);
    all.back().name += "_bfloat16";
    all.back().stored.type = ObservationType::kBfloat16;
  }
  for (std::size_t k = 0; k < exact; ++k) {
    if (make(all[k])->spec().table.features == 0) continue;
    all.push_back(all[k]);
    all.back().name += "_table";
    all.back().stored.as_table = true;
  }
  return all;
}

// Replicas on one device and the rollout that they write.
struct Side {
  Replicas replicas;
  Trajectory trajectory;

  static RolloutShape shape_of(const Case& c, const Spec& spec, DeviceKind kind) {
    RolloutShape shape = RolloutShape::of_roles(spec, c.num_envs, {kind}, c.stored);
    shape.steps = kSteps;
    for (CastPolicy& policy : shape.cast.policies) policy.state_size = 1;  // for `restarted`
    return shape;
  }

  Side(const Case& c, const Environment& environment, DeviceKind kind)
      : replicas(environment, {.num_envs = c.num_envs,
                               .first_replica = 1000,
                               .seed = 5,
                               .reset = c.reset,
                               .pool_size = 7,
                               .starts = c.starts,
                               .notes_dropped = true,
                               .device = {kind}}),
        trajectory(shape_of(c, environment.spec(), kind)) {
    replicas.step(trajectory.first_rows());
  }
};

// Draws legal actions for the whole rollout into both sides.
inline void draw_actions(Draws& draws, Side& cpu, Side& other) {
  for (std::size_t p = 0; p < cpu.trajectory.policies().size(); ++p) {
    PolicyBuffers& buffers = cpu.trajectory.policies()[p];
    const ActionSpace& space = buffers.action_space;
    for (std::int64_t i = 0; i < buffers.action.numel(); ++i) {
      if (space.is_continuous()) {
        const Bounds& bounds = space.bounds[static_cast<std::size_t>(i) % space.bounds.size()];
        buffers.action.data_ptr<float>()[i] = draws.uniform(1.5f * bounds.low, 1.5f * bounds.high);
      } else {
        const auto head = static_cast<std::size_t>(i) % space.heads.size();
        buffers.action.data_ptr<int>()[i] = draws.below(space.heads[head]);
      }
    }
    other.trajectory.policies()[p].action.copy_(buffers.action);
  }
}

inline void expect_same_bits(const at::Tensor& cpu, const at::Tensor& gpu, const std::string& what) {
  const at::Tensor here = gpu.cpu();
  EXPECT_TRUE(at::equal(cpu.contiguous().view(at::kByte), here.contiguous().view(at::kByte))) << what;
}

inline void expect_same(const Side& cpu, const Side& gpu) {
  for (std::size_t p = 0; p < cpu.trajectory.policies().size(); ++p) {
    const PolicyBuffers &a = cpu.trajectory.policies()[p], &b = gpu.trajectory.policies()[p];
    expect_same_bits(a.observation, b.observation, a.name + " observations");
    expect_same_bits(a.active, b.active, a.name + " active");
    expect_same_bits(a.restarted, b.restarted, a.name + " restarted");
    expect_same_bits(a.reward, b.reward, a.name + " rewards");
    expect_same_bits(a.agent_terminated, b.agent_terminated, a.name + " agent_terminated");
    if (a.action_mask.defined()) expect_same_bits(a.action_mask, b.action_mask, a.name + " action masks");
  }
  expect_same_bits(cpu.trajectory.terminated(), gpu.trajectory.terminated(), "terminated");
  expect_same_bits(cpu.trajectory.truncated(), gpu.trajectory.truncated(), "truncated");
  expect_same_bits(cpu.trajectory.reset_step(), gpu.trajectory.reset_step(), "reset_step");
  if (cpu.trajectory.statistics().defined())
    expect_same_bits(cpu.trajectory.statistics(), gpu.trajectory.statistics(), "statistics");
  expect_same_bits(cpu.replicas.dropped(), gpu.replicas.dropped(), "dropped rewards");
  expect_same_bits(cpu.replicas.blocks(), gpu.replicas.blocks(), "state");
}

// Plays until every replica has finished episodes. Both sides must be new.
inline void expect_same_episodes(Side& cpu, Side& other, int time_limit) {
  Draws draws(9);
  const int steps = std::min(2 * time_limit + 3, 1100);
  for (int done = 0; done < steps && !testing::Test::HasFailure(); done += kSteps) {
    SCOPED_TRACE("steps " + std::to_string(done) + " to " + std::to_string(done + kSteps));
    draw_actions(draws, cpu, other);
    for (int t = 0; t < kSteps; ++t) {
      cpu.replicas.step(cpu.trajectory.rows(t));
      other.replicas.step(other.trajectory.rows(t));
    }
    expect_same(cpu, other);
    cpu.trajectory.carry_over();
    other.trajectory.carry_over();
  }
  EXPECT_GE(cpu.replicas.header(0).episode, 1u) << "no episode ended: the test shows less than it says";
}

}  // namespace wd::parity
