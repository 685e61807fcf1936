// twins.h: compares every CUDA kernel with its CPU twin. Bits must be equal; reductions, whose trees differ,
// must give the same sums. `Memory` belongs to the device that runs the kernels (tests/kernels/memory.h).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/columns.h"
#include "kernels/evidence.h"
#include "kernels/normalize.h"
#include "kernels/running.h"
#include "kernels/sequences.h"
#include "src/device/device.h"
#include "tests/kernels/actor_data.h"
#include "tests/kernels/adam_data.h"
#include "tests/kernels/assign_minibatches_data.h"
#include "tests/kernels/cell_data.h"
#include "tests/kernels/chain_data.h"
#include "tests/kernels/clock_data.h"
#include "tests/kernels/critics_data.h"
#include "tests/kernels/entities_data.h"
#include "tests/kernels/episodes_data.h"
#include "tests/kernels/games_data.h"
#include "tests/kernels/gather_data.h"
#include "tests/kernels/hidden_gradient_data.h"
#include "tests/kernels/layer_norm_data.h"
#include "tests/kernels/loss_data.h"
#include "tests/kernels/memory.h"
#include "tests/kernels/noise_gradient_data.h"
#include "tests/kernels/opponents_data.h"
#include "tests/kernels/perceptron_data.h"
#include "tests/kernels/random_actions_data.h"
#include "tests/kernels/reduce_data.h"
#include "tests/kernels/replay_data.h"
#include "tests/kernels/returns_data.h"
#include "tests/kernels/sample_data.h"
#include "tests/kernels/table_layer_data.h"
#include "tests/kernels/td_data.h"
#include "tests/kernels/tiles_data.h"
#include "tests/kernels/values_data.h"
#include "wd/detail/bfloat16.h"

namespace wd {

inline constexpr int kTwinSizes[] = {1,   31,  127,
                                     128, 129, 4097};  // around the size of a thread block, and far beyond it

inline std::vector<ActionLayout> twin_layouts() {
  return {categorical({2}),
          categorical({21, 21}),
          categorical({4, 1, 7, 2, 9}),
          {.distribution = Distribution::kGaussian, .components = 3},
          {.distribution = Distribution::kSquashedGaussian, .components = 3},
          {.distribution = Distribution::kGsde, .components = 3, .latent = 6}};
}

// Rows that a block of a GPU stages 128, 64 and 32 at a time, and rows that are too wide for that.
inline std::vector<ActionLayout> wide_layouts(bool few_rows) {
  if (few_rows) return {categorical({700, 3}), categorical({2500}), categorical({5000})};
  return {categorical({21, 21}),
          categorical({60}),
          categorical({60, 40}),
          categorical({150, 150}),
          categorical({400}),
          {.distribution = Distribution::kGreedy, .num_heads = 1, .head_size = {30}},
          {.distribution = Distribution::kPoint, .components = 3},
          {.distribution = Distribution::kStateGaussian, .components = 3, .deviations = 3}};
}

template <typename Memory>
void twins_of_returns() {
  Draws draws(1);
  for (const int num_envs : kTwinSizes) {
    const RolloutArrays rollout = random_rollout(draws, 37, num_envs, 3);
    const RolloutArrays turns = random_turns(draws, 37, num_envs);
    for (const ReturnMethod method : {ReturnMethod::kGae, ReturnMethod::kNStep, ReturnMethod::kMonteCarlo}) {
      const ReturnsArgs settings{
          .method = method, .gamma = 0.97f, .lambda = 0.9f, .time_limit = 20, .n_step = 5};
      EXPECT_EQ(run_returns(Memory(), turns, settings).advantage,
                run_returns(HostMemory(), turns, settings).advantage);
      EXPECT_EQ(run_returns(Memory(), turns, settings).target,
                run_returns(HostMemory(), turns, settings).target);
      const Returns cpu = run_returns(HostMemory(), rollout, settings);
      const Returns gpu = run_returns(Memory(), rollout, settings);
      EXPECT_EQ(gpu.advantage, cpu.advantage);
      EXPECT_EQ(gpu.target, cpu.target);
      EXPECT_EQ(gpu.mask, cpu.mask);
      EXPECT_EQ(run_returns(Memory(), rollout, settings, 2.5f).target,
                run_returns(HostMemory(), rollout, settings, 2.5f).target);
    }
    const std::vector<float> before = draws.uniforms(3 * num_envs, -2.0f, 2.0f);
    EXPECT_EQ(run_reward_sums(Memory(), rollout, before), run_reward_sums(HostMemory(), rollout, before));
  }
}

struct RunningNumbers {
  std::vector<double> running;
  std::vector<float> norm, unit, weight, bias;
  bool operator==(const RunningNumbers&) const = default;
};

// Merges moments again and again, and rescales an output each time.
template <typename Memory>
RunningNumbers run_merges(Memory memory, double rate, const std::vector<float>& weights) {
  double* const running = memory.put(std::vector<double>(kNumRunning));
  float* const norm = memory.put(std::vector{0.0f, 1.0f});
  float* const before = memory.template make<float>(2);
  float* const unit = memory.template make<float>(2);
  float* const weight = memory.put(weights);
  float* const bias = memory.put(std::vector{0.25f});
  for (const double scale : {1.0, 30.0, 0.1, HUGE_VAL, 0.0}) {
    const double count = scale > 0.0 ? 10.0 : 0.0;
    const double* const moments = memory.put(std::vector{count, 7.0 * scale, 19.0 * scale * scale});
    merge_moments(memory.queue(), {1, moments, rate, running, norm, before, unit, scale != 30.0});
    rescale_output(memory.queue(), {static_cast<std::int64_t>(weights.size()), before, norm, weight, bias});
  }
  return {memory.get(running, kNumRunning), memory.get(norm, 2), memory.get(unit, 2),
          memory.get(weight, weights.size()), memory.get(bias, 1)};
}

template <typename Memory>
void twins_of_running() {
  Draws draws(9);
  for (const int width : kTwinSizes) {
    const std::vector<float> weights = draws.uniforms(width, -2.0f, 2.0f);
    for (const double rate : {0.0, 0.05}) {
      const RunningNumbers cpu = run_merges(HostMemory(), rate, weights);
      EXPECT_EQ(run_merges(Memory(), rate, weights), cpu);
      EXPECT_TRUE(std::isfinite(cpu.norm[0]) && cpu.weight != weights);
    }
  }
}

struct Standardized {
  std::vector<double> moments, running;
  std::vector<float> norm, y, grad;
  bool operator==(const Standardized&) const = default;
};

// Moments of columns, merged; numbers in units of all columns but one; and a gradient of them.
template <typename Memory>
Standardized run_columns(Memory memory, int rows, int columns, const std::vector<float>& x, bool halves) {
  const auto n = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  const auto C = static_cast<std::size_t>(columns);
  ColumnsView view{.stride = columns};
  if (halves) {
    std::vector<std::uint16_t> rounded;
    for (const float value : x) rounded.push_back(to_bfloat16(value));
    view.halves = memory.put(rounded);
  } else {
    view.floats = memory.put(x);
  }
  std::vector<std::uint8_t> counts;
  for (int row = 0; row < rows; ++row) counts.push_back(row % 3 != 1 ? 1 : 0);
  double* const moments = memory.put(std::vector<double>(kNumMoments * C));
  double* const running = memory.put(std::vector<double>(kNumRunning * C));
  float* const norm = memory.put(std::vector<float>(2 * C, 1.0f));
  float* const y = memory.template make<float>(n);
  float* const grad = memory.put(x);
  const ColumnMomentsArgs args{
      .x = view,
      .rows = rows,
      .columns = columns,
      .mask = memory.put(counts),
      .partial = memory.put(std::vector<double>(static_cast<std::size_t>(kColumnParts) * kNumMoments * C)),
      .moments = moments};
  const Queue queue = memory.queue();
  column_moments(queue, args);
  add_column_moments(queue, args);
  merge_moments(queue, {.columns = columns, .moments = moments, .running = running, .norm = norm});
  standardize(queue, {.x = view,
                      .rows = rows,
                      .columns = columns,
                      .num_scaled = columns - 1,
                      .norm = norm,
                      .y = {y, columns}});
  standardize_backward(
      queue,
      {.rows = rows, .num_scaled = columns - 1, .norm = norm, .y = {y, columns}, .grad = {grad, columns}});
  return {memory.get(moments, kNumMoments * C), memory.get(running, kNumRunning * C), memory.get(norm, 2 * C),
          memory.get(y, n), memory.get(grad, n)};
}

template <typename Memory>
void twins_of_columns() {
  Draws draws(12);
  for (const int rows : kTwinSizes) {
    for (const int columns : {2, 9, 33}) {
      const std::vector<float> x = draws.uniforms(std::int64_t{rows} * columns, -3.0f, 5.0f);
      for (const bool halves : {false, true}) {
        const Standardized cpu = run_columns(HostMemory(), rows, columns, x, halves);
        EXPECT_EQ(run_columns(Memory(), rows, columns, x, halves), cpu);
      }
    }
  }
}

template <typename Memory>
void twins_of_sample() {
  Draws draws(2);
  for (const int replicas : kTwinSizes) {
    for (const ActionLayout& layout : twin_layouts()) {
      for (const bool masks : {false, true}) {
        for (const bool greedy : {false, true}) {
          SampleData data = random_sample_data(draws, layout, replicas, 3, masks && layout.num_heads > 0);
          data.settings.greedy = greedy;
          if (greedy) data.value_norm = {1.5f, 3.0f};
          const Sampled cpu = run_sample(HostMemory(), data), gpu = run_sample(Memory(), data);
          EXPECT_EQ(gpu.action, cpu.action);
          EXPECT_EQ(gpu.log_prob, cpu.log_prob);
          EXPECT_EQ(gpu.value, cpu.value);
        }
      }
    }
  }
}

// Rows with padding behind them.
template <typename Memory>
void twins_of_sampled_rows() {
  Draws draws(22);
  for (const int replicas : {3, 11, 43, 300}) {
    for (const ActionLayout& layout : wide_layouts(replicas == 3)) {
      for (const int padding : {0, 1, 3}) {
        for (const bool masks : {false, true}) {
          SampleData data = random_sample_data(draws, layout, replicas, 3, masks && layout.num_heads > 0);
          data.padding = padding;
          const Sampled cpu = run_sample(HostMemory(), data), gpu = run_sample(Memory(), data);
          EXPECT_EQ(gpu.action, cpu.action);
          EXPECT_EQ(gpu.log_prob, cpu.log_prob);
          EXPECT_EQ(gpu.value, cpu.value);
        }
      }
    }
  }
}

template <typename Memory>
void twins_of_random_actions() {
  for (const int rows : kTwinSizes) {
    const std::vector<std::uint8_t> legal(static_cast<std::size_t>(rows) * 42, 1);
    for (const ActionSpace& space :
         {ActionSpace::discrete({2}), ActionSpace::discrete({21, 21}), ActionSpace::box(3, -1.0f, 2.0f)}) {
      EXPECT_EQ(run_random_actions(Memory(), space, rows, 7),
                run_random_actions(HostMemory(), space, rows, 7));
    }
    const ActionSpace space = ActionSpace::discrete({21, 21});
    EXPECT_EQ(run_random_actions(Memory(), space, rows, 7, legal),
              run_random_actions(HostMemory(), space, rows, 7, legal));
  }
}

template <typename Memory>
void twins_of_loss() {
  Draws draws(3);
  LossArgs a2c, ppo;
  a2c.fixed.entropy_coeff = 0.05f;
  ppo.ppo = true;
  ppo.fixed.value_clip = 0.5f;
  ppo.fixed.entropy_coeff = 0.01f;
  for (const int rows : kTwinSizes) {
    for (const ActionLayout& layout : twin_layouts()) {
      for (const LossArgs& settings : {a2c, ppo}) {
        LossData data = random_loss_data(draws, layout, rows, layout.num_heads > 0);
        data.norm = {0.25f, 0.75f};
        if (rows % 2 == 1) data.value_norm = {1.5f, 3.0f};
        if (rows % 2 == 1 && !data.legal.empty()) data.policy_weight = {1.75f};
        const Losses cpu = run_loss(HostMemory(), data, settings), gpu = run_loss(Memory(), data, settings);
        EXPECT_EQ(gpu.output_grad, cpu.output_grad);
        EXPECT_EQ(gpu.value_grad, cpu.value_grad);
        EXPECT_EQ(gpu.log_std_grad, cpu.log_std_grad);
        EXPECT_EQ(gpu.row_sums, cpu.row_sums);
      }
    }
  }
}

// Rows with padding behind them, which stays as it is.
template <typename Memory>
void twins_of_loss_rows() {
  Draws draws(23);
  LossArgs ppo;
  ppo.ppo = true;
  ppo.fixed.entropy_coeff = 0.01f;
  for (const int rows : {9, 33, 129, 900}) {
    for (const ActionLayout& layout : wide_layouts(rows == 9)) {
      if (layout.distribution != Distribution::kCategorical) continue;
      for (const int padding : {0, 1, 2}) {
        LossData data = random_loss_data(draws, layout, rows, padding > 0);
        data.stride = layout.columns() + 1 + padding;
        const Losses cpu = run_loss(HostMemory(), data, ppo), gpu = run_loss(Memory(), data, ppo);
        EXPECT_EQ(gpu.output_grad, cpu.output_grad);
        EXPECT_EQ(gpu.row_sums, cpu.row_sums);
        for (std::int64_t row = 0; row < rows; ++row)
          for (int k = 0; k < padding; ++k)
            ASSERT_EQ(gpu.output_grad[row * data.stride + layout.columns() + 1 + k], 77.0f);
      }
    }
  }
}

template <typename Memory>
void twins_of_noise_gradient() {
  Draws draws(17);
  for (const int rows : kTwinSizes) {
    for (const int size : {1, 64, 70}) {
      const NoiseGradientData data = random_noise_gradient_data(draws, rows, 3, size);
      const std::vector<float> cpu = run_noise_gradient(HostMemory(), data),
                               gpu = run_noise_gradient(Memory(), data);
      // Each adds in an order of its own.
      const std::vector<double> terms = sum_of_magnitudes(data);
      for (std::size_t i = 0; i < cpu.size(); ++i)
        ASSERT_NEAR(gpu[i], cpu[i], 2e-6 * (1.0 + terms[i])) << "element " << i << " of " << rows << " rows";
    }
  }
}

template <typename Memory>
void twins_of_episodes() {
  Draws draws(4);
  for (const int num_envs : kTwinSizes) {
    Episodes cpu = fresh(num_envs), gpu = cpu;
    for (int rollouts = 0; rollouts < 2; ++rollouts) {
      const RolloutArrays rollout = random_rollout(draws, 37, num_envs, 5);
      cpu = run_episodes(HostMemory(), rollout, cpu);
      gpu = run_episodes(Memory(), rollout, gpu);
      EXPECT_EQ(gpu.running_return, cpu.running_return);
      EXPECT_EQ(gpu.running_length, cpu.running_length);
      EXPECT_EQ(gpu.finished_return, cpu.finished_return);
      EXPECT_EQ(gpu.finished_length, cpu.finished_length);
    }
  }
}

template <typename Memory>
void twins_of_clock() {
  Schedule falling;
  falling.points = {{100.0, 1.0}, {200.0, 0.7}, {1000.0, 1.0 / 3.0}};
  for (const std::int64_t ticks : {0, 5, 100}) {
    const ScheduledNumbers cpu = run_schedules(HostMemory(), {falling, falling}, ticks, 31),
                           gpu = run_schedules(Memory(), {falling, falling}, ticks, 31);
    EXPECT_EQ(gpu.value, cpu.value);
    EXPECT_EQ(gpu.rounded, cpu.rounded);
  }
}

template <typename Memory>
void twins_of_opponents() {
  for (const int num_envs : kTwinSizes) {
    const Opponents cpu = run_opponents(HostMemory(), num_envs, 5),
                    gpu = run_opponents(Memory(), num_envs, 5);
    EXPECT_EQ(cpu.now, gpu.now);
    EXPECT_EQ(cpu.next, gpu.next);
    EXPECT_EQ(cpu.action, gpu.action);
  }
}

template <typename Memory>
void twins_of_tiles() {
  for (const int num_envs : {1, 63, 64, 65, 700})
    for (const TilesCase& of : tiles_cases(num_envs))
      EXPECT_EQ(run_tiles(Memory(), of), run_tiles(HostMemory(), of))
          << num_envs << " replicas of " << of.num_agents;
}

template <typename Memory>
void twins_of_games() {
  for (const int rows : kTwinSizes)
    for (const int learners : {1, 2})
      EXPECT_EQ(run_games(Memory(), Games(rows, learners)), run_games(HostMemory(), Games(rows, learners)));
}

template <typename Memory>
std::vector<std::uint8_t> run_find_choice(Memory memory, const ActionLayout& layout,
                                          const std::vector<std::uint8_t>& legal,
                                          const std::vector<std::uint8_t>& mask) {
  WithChoiceArgs args{static_cast<std::int64_t>(mask.size()), layout, memory.put(legal), memory.put(mask)};
  args.with_choice = memory.template make<std::uint8_t>(mask.size());
  find_choice(memory.queue(), args);
  return memory.get(args.with_choice, mask.size());
}

template <typename Memory>
void twins_of_find_choice() {
  Draws draws(4);
  for (const int rows : kTwinSizes) {
    for (const ActionLayout& layout : {categorical({2}), categorical({4, 1, 7})}) {
      std::vector<std::uint8_t> legal, mask;
      for (int row = 0; row < rows; ++row) {
        const int odds = draws.one_in(2) ? 20 : 2;  // rows with one legal choice of each head, or none
        for (int k = 0; k < layout.columns(); ++k) legal.push_back(draws.one_in(odds) ? 1 : 0);
        mask.push_back(draws.one_in(3) ? 0 : 1);
      }
      EXPECT_EQ(run_find_choice(Memory(), layout, legal, mask),
                run_find_choice(HostMemory(), layout, legal, mask));
    }
  }
}

template <typename Memory>
void twins_of_appended_episodes() {
  Draws draws(6);
  for (const int num_envs : kTwinSizes) {
    const RolloutArrays rollout = random_rollout(draws, 37, num_envs, 2);
    const Episodes ended = run_episodes(HostMemory(), rollout, fresh(num_envs));
    const std::int64_t capacity = 40 * num_envs;
    const auto cpu = run_append(HostMemory(), {ended, ended}, num_envs, {}, capacity, 3),
               gpu = run_append(Memory(), {ended, ended}, num_envs, {}, capacity, 3);
    EXPECT_EQ(gpu, cpu);
  }
}

// `skipped`: numbers by which the array misses an address that is a multiple of 16 bytes.
template <typename Memory>
void twins_of_watch() {
  const auto look = [](auto memory, std::int64_t n, std::int64_t skipped, std::vector<std::int64_t> bad,
                       bool as_bfloat16) {
    std::vector<float> values(static_cast<std::size_t>(n + skipped), 1.0f);
    for (std::int64_t k = 0; k < skipped; ++k) values[k] = std::numeric_limits<float>::quiet_NaN();
    for (const std::int64_t i : bad) values[skipped + i] = std::numeric_limits<float>::infinity();
    std::vector<std::uint16_t> rounded(values.size());
    std::transform(values.begin(), values.end(), rounded.begin(), to_bfloat16);
    WatchArgs args{.num_arrays = 2};
    args.array[0] = {memory.put(std::vector<float>(1000, 2.0f)), 1000};
    args.array[1] = as_bfloat16 ? FloatArray{memory.put(rounded) + skipped, n, true}
                                : FloatArray{memory.put(values) + skipped, n};
    args.first = memory.template make<std::int64_t>(2);
    args.time = memory.put(std::vector<TrainingTime>{{.iteration = 4}});
    args.failure = memory.put(std::vector<Failure>{{}});
    watch(memory.queue(), args);
    const Failure found = memory.get(args.failure, 1)[0];
    return std::vector<double>{static_cast<double>(found.iteration), static_cast<double>(found.array),
                               static_cast<double>(found.index), found.value};
  };
  for (const bool as_bfloat16 : {false, true}) {
    const auto agree = [&](std::int64_t n, std::int64_t skipped, const std::vector<std::int64_t>& bad) {
      EXPECT_EQ(look(Memory(), n, skipped, bad, as_bfloat16),
                look(HostMemory(), n, skipped, bad, as_bfloat16))
          << n << " numbers, " << skipped << " skipped";
    };
    for (const std::int64_t skipped : {0, 1, 3}) {
      for (const std::int64_t n : {1, 2, 15, 20003}) {
        agree(n, skipped, {});
        for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) agree(n, skipped, {at});
        agree(n, skipped, {n - 1, n / 2});
      }
      for (std::int64_t at = 4 * 256 * 4; at < 4 * 256 * 4 + 9; ++at) agree(20003, skipped, {at, at + 3});
    }
  }
  // More than what the blocks read at once.
  EXPECT_EQ(look(Memory(), 4500000, 0, {4400000, 4499999}, false),
            look(HostMemory(), 4500000, 0, {4400000, 4499999}, false));
}

template <typename Memory>
void twins_of_evidence() {
  const auto keep = [](auto memory, const Failure& failure) {
    constexpr std::int64_t kSteps = 200, kReplicas = 7, kRow = 13;
    std::vector<std::byte> rows(kSteps * kReplicas * kRow), blocks(kReplicas * 64);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::byte>(i * 37 % 251);
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::byte>(i % 255);
    EvidenceArgs args{.replicas = kReplicas, .num_arrays = 2};
    args.failure = memory.put(std::vector<Failure>{failure});
    args.time = memory.put(std::vector<TrainingTime>{{.iteration = 4}});
    args.array[0] = {memory.put(blocks), memory.put(std::vector<std::byte>(64)), 1, 64};
    args.array[1] = {memory.put(rows), memory.put(std::vector<std::byte>(kSteps * kRow)), kSteps, kRow};
    keep_evidence(memory.queue(), args);
    std::vector<std::byte> kept = memory.get(args.array[0].to, 64);
    const std::vector<std::byte> of_rows = memory.get(args.array[1].to, kSteps * kRow);
    kept.insert(kept.end(), of_rows.begin(), of_rows.end());
    return kept;
  };
  const Failure now{.iteration = 5, .replica = 3}, before{.iteration = 4, .replica = 3},
      nobodys{.iteration = 5};
  const std::vector<std::byte> kept = keep(HostMemory(), now), none(kept.size());
  EXPECT_EQ(kept[1], static_cast<std::byte>((3 * 64 + 1) % 255));
  EXPECT_EQ(kept[64 + 2 * 13], static_cast<std::byte>((2 * 7 + 3) * 13 * 37 % 251)) << "step 2 of replica 3";
  EXPECT_EQ(keep(Memory(), now), kept);
  for (const Failure& other : {Failure{}, before, nobodys}) {
    EXPECT_EQ(keep(HostMemory(), other), none);
    EXPECT_EQ(keep(Memory(), other), none);
  }
}

template <typename Memory>
void twins_of_assign_minibatches() {
  for (const int num_envs : kTwinSizes) {
    for (const int count : {2, 7, 64}) {
      for (const int share : {0, 5}) {
        const AssignMinibatchesArgs args{
            .steps = 37, .num_envs = num_envs, .count = count, .share = share, .first_replica = num_envs};
        EXPECT_EQ(run_assign_minibatches(Memory(), args), run_assign_minibatches(HostMemory(), args));
      }
    }
  }
}

template <typename Memory>
void twins_of_replay() {
  Draws draws(25);
  for (const ReplayCase& settings :
       {ReplayCase{}, ReplayCase{.per_replica = 1, .every = 2}, ReplayCase{.n_step = 1},
        ReplayCase{.n_step = 2, .burn_in = 3, .length = 4, .per_block = 3},
        ReplayCase{.n_step = 1, .per_replica = 1, .every = 2, .length = 5, .per_block = 50}}) {
    for (const int num_envs : {4, 132}) {
      ReplayCase c = settings;
      c.num_envs = num_envs;
      const std::vector<RolloutArrays> rollouts = random_rollouts(draws, c);
      for (const bool prioritized : {false, true}) {
        c.prioritized = prioritized;
        const ReplayResult cpu = run_replay(HostMemory(), c, rollouts);
        EXPECT_TRUE(run_replay(Memory(), c, rollouts) == cpu);
        EXPECT_TRUE(std::ranges::count(cpu.discount, 0.0f) > 0 && std::ranges::count(cpu.mask, 0) > 0);
      }
    }
  }
}

template <typename Memory>
void twins_of_actor() {
  Draws draws(27);
  for (const int rows : kTwinSizes) {
    for (const Distribution distribution : {Distribution::kPoint, Distribution::kStateGaussian}) {
      ActorData data = random_actor(draws, distribution, rows, 3);
      if (distribution == Distribution::kPoint) data.noise = 0.2f, data.noise_clip = 0.5f;
      EXPECT_TRUE(run_actor(Memory(), data) == run_actor(HostMemory(), data));
    }
  }
}

template <typename Memory>
void twins_of_critics() {
  EXPECT_TRUE(run_temperature(Memory(), 7.0, 3.1, 0.3f, -2.0, 9.3, 0.4) ==
              run_temperature(HostMemory(), 7.0, 3.1, 0.3f, -2.0, 9.3, 0.4));
  Draws draws(28);
  for (const int rows : kTwinSizes) {
    for (const int count : {1, 2}) {
      for (const int quantiles : {1, 5}) {
        const CriticsData data = random_critics(draws, {}, rows, count, quantiles);
        EXPECT_TRUE(run_critics(Memory(), data) == run_critics(HostMemory(), data));
      }
      const CriticsData choices = random_critics(draws, categorical({4, 1, 7}), rows, count, 1);
      EXPECT_TRUE(run_critics(Memory(), choices) == run_critics(HostMemory(), choices));
    }
  }
}

template <typename Memory>
void twins_of_td() {
  Draws draws(26);
  for (const int rows : kTwinSizes) {
    for (const ActionLayout& layout : {categorical({5}), categorical({4, 1, 7})}) {
      for (const int quantiles : {1, 8}) {
        for (const float huber : {0.0f, 0.3f}) {
          TdData data = random_td(draws, layout, rows, quantiles, huber, huber > 0.0f);
          data.cql = huber;  // without it, and with it
          EXPECT_TRUE(run_td(Memory(), data) == run_td(HostMemory(), data));
        }
      }
    }
  }
}

template <typename Memory>
void twins_of_gathered_rows() {
  for (const int rows : kTwinSizes) {
    const std::vector<std::int64_t> index = gather_index(777, rows);
    EXPECT_EQ(run_gather(Memory(), 777, index), run_gather(HostMemory(), 777, index));
  }
}

template <typename Memory>
void twins_of_table_layer() {
  Draws draws(21);
  for (const TableCase& c : table_cases()) {
    SCOPED_TRACE(testing::Message() << c.agents << " agents, " << c.rows() << " of them, " << c.width);
    const TableData data = random_table(draws, c);
    const TableResult cpu = run_table(HostMemory(), c, data), gpu = run_table(Memory(), c, data),
                      again = run_table(Memory(), c, data);
    for (std::size_t i = 0; i < cpu.y.size(); ++i) {
      if (static_cast<int>(i) % c.y_stride() >= c.width) continue;  // padding, which is never written
      ASSERT_EQ(gpu.y[i], cpu.y[i]) << i;
    }
    EXPECT_EQ(gpu.weight_grad, cpu.weight_grad);
    EXPECT_EQ(gpu.bias_grad, cpu.bias_grad);
    EXPECT_EQ(again.weight_grad, gpu.weight_grad);
  }
}

template <typename Memory>
void twins_of_table_blocks() {
  Draws draws(23);
  for (const TableCase& c : table_block_cases()) {
    SCOPED_TRACE(testing::Message() << c.agents << " agents, " << c.rows() << " of them, " << c.width);
    const TableData data = random_table(draws, c);
    const TableResult gpu = run_table(Memory(), c, data), again = run_table(Memory(), c, data);
    expect_table(c, data, gpu);
    EXPECT_EQ(again.weight_grad, gpu.weight_grad);
    for (std::size_t i = 0; i < gpu.y.size(); ++i) {
      const int column = static_cast<int>(i) % c.y_stride();
      if (column < c.width) continue;
      const bool in_pack = column < (c.width + 7) / 8 * 8;
      ASSERT_TRUE(in_pack ? gpu.y[i] == 0.0f : std::isnan(gpu.y[i])) << "padding " << i;
    }
  }
}

// Rows have equal bits, and so do gradients of scale and shift while no part has two rows. In bfloat16, the
// GPU stores the CPU's numbers rounded.
template <typename Memory>
void twins_of_layer_norm() {
  Draws draws(22);
  for (const int width : {1, 31, 64, 257}) {
    for (const std::int64_t rows : {1, 5, 128, 1000}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
      NormData data = random_norm(draws, rows, width, width % 4);
      for (float& number : data.grad) number = round_to_bfloat16(number);
      const NormResult cpu = run_layer_norm(HostMemory(), data), gpu = run_layer_norm(Memory(), data),
                       rounded = run_layer_norm(Memory(), data, true);
      EXPECT_EQ(gpu.normalized, cpu.normalized);
      EXPECT_EQ(gpu.inverse_std, cpu.inverse_std);
      EXPECT_EQ(gpu.y, cpu.y);
      EXPECT_EQ(gpu.grad, cpu.grad);
      EXPECT_EQ(rounded.normalized, cpu.normalized);
      EXPECT_EQ(rounded.scale_grad, gpu.scale_grad);
      EXPECT_EQ(rounded.shift_grad, gpu.shift_grad);
      for (std::size_t i = 0; i < cpu.y.size(); ++i) {
        ASSERT_EQ(rounded.y[i], round_to_bfloat16(cpu.y[i])) << i;
        ASSERT_EQ(rounded.grad[i], round_to_bfloat16(cpu.grad[i])) << i;
      }
      if (rows <= kNormParts) {
        EXPECT_EQ(gpu.scale_grad, cpu.scale_grad);
        EXPECT_EQ(gpu.shift_grad, cpu.shift_grad);
      }
      for (std::size_t j = 0; j < cpu.scale_grad.size(); ++j) {
        EXPECT_NEAR(gpu.scale_grad[j], cpu.scale_grad[j], 2e-7f * static_cast<float>(rows));
        EXPECT_NEAR(gpu.shift_grad[j], cpu.shift_grad[j], 2e-7f * static_cast<float>(rows));
      }
    }
  }
}

template <typename Memory>
void twins_of_hidden_gradients() {
  Draws draws(31);
  for (const GradientCase& c : gradient_cases()) {
    SCOPED_TRACE(testing::Message() << c.rows << " x " << c.width << ", derivative "
                                    << static_cast<int>(c.derivative) << ", bfloat16 " << c.halves_in
                                    << c.halves_out);
    const std::int64_t numbers = c.matrices * c.rows * (c.width + c.padding);
    std::vector<float> grad = draws.uniforms(numbers, -1.0f, 1.0f),
                       activated = draws.uniforms(numbers, -1.0f, 1.0f);
    for (std::size_t i = 0; i < activated.size(); i += 3) activated[i] = 0.0f;
    if (c.halves_in) std::transform(grad.begin(), grad.end(), grad.begin(), round_to_bfloat16);
    if (c.halves_in) std::transform(activated.begin(), activated.end(), activated.begin(), round_to_bfloat16);
    const GradientResult gpu = run_gradient(Memory(), c, grad, activated),
                         expected = expected_gradient(c, grad, activated);
    EXPECT_EQ(gpu.to, expected.to);
    EXPECT_EQ(gpu.bias_grad, expected.bias_grad);
  }
}

template <typename Memory>
void twins_of_gradient_products() {
  Draws draws(37);
  for (const ProductCase& c : product_cases()) {
    SCOPED_TRACE(testing::Message() << c.rows << " x " << c.inner << " x " << c.width << ", bfloat16 "
                                    << c.halves);
    const ProductData data = exact_product_data(c, draws);
    const GradientResult gpu = run_product(Memory(), c, data), expected = expected_product(c, data);
    EXPECT_EQ(gpu.to, expected.to);
    EXPECT_EQ(gpu.bias_grad, expected.bias_grad);
  }
}

// Bits are those of the products one after the other.
template <typename Memory>
void twins_of_chains() {
  Draws draws(5);
  for (const ChainCase& c : chain_cases()) {
    SCOPED_TRACE(testing::Message() << c.rows << " x " << c.width << ", " << c.outputs << " outputs");
    if (ChainShape::shared_bytes(c.width) > shared_memory({DeviceKind::kCuda, 0})) continue;
    const ChainData data = random_chain_data(c, draws);
    const ChainResult chained = run_chain(Memory(), c, data, true),
                      apart = run_chain(Memory(), c, data, false);
    expect_chain(c, data, chained);
    EXPECT_EQ(chained.grad, apart.grad);
    EXPECT_EQ(chained.below_grad, apart.below_grad);
    EXPECT_EQ(chained.bias_grad, apart.bias_grad);
    EXPECT_EQ(chained.below_bias_grad, apart.below_bias_grad);
  }
}

template <typename Memory>
void twins_of_perceptrons() {
  Draws draws(7);
  for (const PerceptronCase& c : perceptron_cases()) {
    SCOPED_TRACE(testing::Message() << c.rows << " rows, " << c.inputs << ", " << c.outputs << " outputs");
    if (PerceptronShape::kSharedBytes > shared_memory({DeviceKind::kCuda, 0})) continue;
    const PerceptronData data = random_perceptron_data(c, draws);
    const std::vector<float> before = draws.uniforms(c.shape().begin(3), -1.0f, 1.0f);
    expect_perceptron(c, data, before, run_perceptron(Memory(), c, data, before));
  }
}

template <typename Memory>
void twins_of_entities() {
  Draws draws(23);
  for (const EntitiesData& data : random_entities(draws)) {
    SCOPED_TRACE(testing::Message() << data.name << ", " << data.rows << " rows");
    const EntitiesResult cpu = run_entities(HostMemory(), data), gpu = run_entities(Memory(), data);
    EXPECT_EQ(gpu.found, cpu.found);
    EXPECT_EQ(gpu.features, cpu.features);
    for (std::size_t i = 0; i < cpu.features.size(); ++i)  // 7: padding, which is not written
      ASSERT_EQ(gpu.rounded[i], cpu.features[i] == 7.0f ? 7 : to_bfloat16(cpu.features[i])) << i;
    EXPECT_EQ(gpu.rounded, cpu.rounded);
    EXPECT_EQ(gpu.things, cpu.things);
    EXPECT_EQ(gpu.exists, cpu.exists);
    EXPECT_EQ(gpu.grad, cpu.grad);
    if (data.rows >= 200 && data.agents <= 10) {
      EXPECT_TRUE(std::ranges::count(cpu.found, -1) > 0 && std::ranges::count(cpu.found, 1) > 0);
    }
  }
}

template <typename Memory>
void twins_of_pool() {
  Draws draws(24);
  for (const PoolShape& shape : pool_shapes()) {
    for (const std::int64_t rows : {1, 127, 500}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << shape.things << " things");
      const PoolData data = random_pool(draws, shape, rows);
      const PoolResult cpu = run_pool(HostMemory(), data), gpu = run_pool(Memory(), data);
      EXPECT_EQ(gpu.weight, cpu.weight);
      EXPECT_EQ(gpu.largest, cpu.largest);
      EXPECT_EQ(gpu.pooled, cpu.pooled);
      EXPECT_EQ(gpu.grad, cpu.grad);
    }
  }
}

template <typename Memory>
void twins_of_values() {
  for (const ValuesShape& shape : values_shapes()) {
    for (const std::int64_t rows : {1, 127, 500}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << shape.choices << " choices");
      const ValuesResult cpu = run_values(HostMemory(), shape, rows), gpu = run_values(Memory(), shape, rows);
      EXPECT_EQ(gpu.z, cpu.z);
      EXPECT_EQ(gpu.q, cpu.q);
      EXPECT_EQ(gpu.of_z, cpu.of_z);
      EXPECT_EQ(gpu.of_q, cpu.of_q);
    }
  }
}

template <typename Memory>
void twins_of_reductions_of_the_same_bits_every_time() {
  Draws draws(5);
  for (const std::int64_t n : {0, 1, 127, 4095, 4096, 4097, 1000003}) {
    const ReduceData data = random_reduce_data(draws, n);
    const auto expect_near = [&](double gpu, double cpu) {
      EXPECT_NEAR(gpu, cpu, 1e-11 * (1.0 + static_cast<double>(n)));
    };
    const std::vector<double> moments = run_masked_moments(Memory(), data);
    const std::vector<double> cpu_moments = run_masked_moments(HostMemory(), data);
    EXPECT_EQ(moments[0], cpu_moments[0]);
    expect_near(moments[1], cpu_moments[1]);
    expect_near(moments[2], cpu_moments[2]);

    for (const std::int64_t count : {1, 2}) {
      if (n % count != 0) continue;
      const std::vector<double> by_row = run_masked_row_moments(Memory(), data, count);
      const std::vector<double> cpu_by_row = run_masked_row_moments(HostMemory(), data, count);
      for (std::size_t k = 0; k < by_row.size(); ++k) expect_near(by_row[k], cpu_by_row[k]);
    }

    const std::vector<float> rows = draws.uniforms(6 * n, -1.0f, 2.0f);
    const std::vector<double> start = {0.5, -7.0, 0.0, 1.0, 2.0, 3.0};
    const std::vector<double> sums = run_sum_rows(Memory(), rows, start);
    const std::vector<double> cpu_sums = run_sum_rows(HostMemory(), rows, start);
    const std::vector<double> replaced = run_sum_rows(Memory(), rows, start, false);
    const std::vector<double> cpu_replaced = run_sum_rows(HostMemory(), rows, start, false);
    for (std::size_t k = 0; k < 6; ++k) expect_near(sums[k], cpu_sums[k]);
    for (std::size_t k = 0; k < 6; ++k) expect_near(replaced[k], cpu_replaced[k]);

    const double squares = run_sum_of_squares(Memory(), data.x);
    expect_near(squares, run_sum_of_squares(HostMemory(), data.x));
    for (int again = 0; again < 3; ++again) {
      EXPECT_EQ(run_masked_moments(Memory(), data), moments);
      EXPECT_EQ(run_sum_rows(Memory(), rows, start), sums);
      EXPECT_EQ(run_sum_of_squares(Memory(), data.x), squares);
    }
  }
}

// The norm's last bits may differ because its tree differs; this rarely changes results in single precision.
// Returns the optimizer of `Memory` after the minibatches.
template <typename Memory>
Optimizer expect_same_steps(Optimizer start, const std::vector<Minibatch>& minibatches) {
  const Optimizer cpu = run_adam(HostMemory(), start, minibatches);
  const Optimizer gpu = run_adam(Memory(), start, minibatches);
  for (std::size_t i = 0; i < cpu.parameter.size(); ++i) {
    EXPECT_NEAR(gpu.parameter[i], cpu.parameter[i], 1e-6f);
    EXPECT_NEAR(gpu.first[i], cpu.first[i], 1e-6f * std::abs(cpu.first[i]));
    EXPECT_NEAR(gpu.second[i], cpu.second[i], 1e-6f * cpu.second[i]);
    if (testing::Test::HasFailure()) return gpu;
  }
  EXPECT_EQ(gpu.record.arrived, 0u);
  for (int k = 0; k < kNumLossSums; ++k) EXPECT_EQ(gpu.losses.sums[k], cpu.losses.sums[k]);
  const Optimizer again = run_adam(Memory(), start, minibatches);
  EXPECT_EQ(again.parameter, gpu.parameter);
  EXPECT_EQ(again.shadow, gpu.shadow);
  // If nothing depends on the norm's last bits, all bits equal those of the CPU.
  start.record.max_grad_norm = std::numeric_limits<double>::infinity();
  const Optimizer cpu_free = run_adam(HostMemory(), start, minibatches);
  const Optimizer gpu_free = run_adam(Memory(), start, minibatches);
  EXPECT_EQ(gpu_free.parameter, cpu_free.parameter);
  EXPECT_EQ(gpu_free.second, cpu_free.second);
  EXPECT_EQ(gpu_free.shadow, cpu_free.shadow);
  return gpu;
}

template <typename Memory>
void twins_of_adam() {
  Draws draws(6);
  for (const std::int64_t n : {1, 3, 127, 4096, 4097, 1000003}) {
    Optimizer start = Optimizer::of(draws.uniforms(n, -1.0f, 1.0f));
    start.losses.limit = 0.01;
    const Minibatch first = random_minibatch(draws, n), second = random_minibatch(draws, n);
    const Minibatch empty = {std::vector<float>(static_cast<std::size_t>(n)),
                             std::vector<double>(kNumLossSums)};
    Minibatch far = random_minibatch(draws, n), bad = random_minibatch(draws, n);
    far.totals[kApproxKl] = 0.02 * far.totals[kCount];
    bad.gradient.back() = std::numeric_limits<float>::infinity();

    const Optimizer kept = expect_same_steps<Memory>(start, {first, empty, second, far, first});
    EXPECT_EQ(kept.steps, 2);
    EXPECT_EQ(kept.record.steps, 2.0);
    EXPECT_EQ(kept.record.refused, 0.0);
    EXPECT_EQ(kept.record.stopped, 1.0);

    const Optimizer refused = expect_same_steps<Memory>(start, {first, bad, second});
    EXPECT_EQ(refused.steps, 1);
    EXPECT_EQ(refused.record.steps, 2.0);
    EXPECT_EQ(refused.record.refused, 1.0);
    EXPECT_EQ(refused.record.stopped, 1.0);
  }
}

template <typename Memory>
void twins_of_cells() {
  Draws draws(24);
  for (const CellKind kind : kCellKinds) {
    for (const auto& [width, sequences, steps, restarts] : {std::tuple(1, 1, 1, 0),
                                                            {3, 5, 4, 2},
                                                            {31, 4, 3, 0},
                                                            {33, 9, 5, 3},
                                                            {64, 1, 3, 2},
                                                            {300, 2, 2, 4}}) {
      SCOPED_TRACE(testing::Message() << "cell " << static_cast<int>(kind) << ": " << steps << " steps of "
                                      << sequences << " sequences, " << width << " units");
      const CellData data = random_cell(draws, {kind, width, sequences, steps}, restarts);
      const CellResult cpu = run_cell(HostMemory(), data), gpu = run_cell(Memory(), data);
      EXPECT_EQ(gpu.output, cpu.output);
      EXPECT_EQ(gpu.kept, cpu.kept);
      EXPECT_EQ(gpu.previous, cpu.previous);
      EXPECT_EQ(gpu.next_state, cpu.next_state);
      EXPECT_EQ(gpu.input_grad, cpu.input_grad);
      EXPECT_EQ(gpu.product_grad, cpu.product_grad);
    }
  }
}

template <typename Memory>
std::vector<std::int64_t> run_sequences(Memory memory, const std::vector<std::int64_t>& order, int length,
                                        int per_block) {
  SequenceArgs args{static_cast<std::int64_t>(order.size()) * length, length, per_block, 50};
  args.order = memory.put(order);
  args.steps = memory.template make<std::int64_t>(static_cast<std::size_t>(args.rows));
  args.first = memory.template make<std::int64_t>(order.size());
  sequence_steps(memory.queue(), args);
  std::vector<std::int64_t> all = memory.get(args.steps, static_cast<std::size_t>(args.rows));
  const std::vector<std::int64_t> first = memory.get(args.first, order.size());
  all.insert(all.end(), first.begin(), first.end());
  return all;
}

template <typename Memory>
void twins_of_sequences() {
  Draws draws(14);
  for (const int sequences : kTwinSizes) {
    std::vector<std::int64_t> order;
    for (int s = 0; s < sequences; ++s) order.push_back(draws.below(200));
    for (const int length : {1, 25})
      EXPECT_EQ(run_sequences(Memory(), order, length, 7), run_sequences(HostMemory(), order, length, 7));
  }
}

template <typename Memory>
std::vector<std::int64_t> run_teaching_rows(Memory memory, const std::vector<std::int64_t>& order,
                                            const std::vector<std::uint8_t>& mask,
                                            const std::vector<std::uint8_t>& legal, int choices) {
  TeachingRowsArgs args{static_cast<std::int64_t>(order.size()), memory.put(order), memory.put(mask),
                        memory.put(legal) + 1, choices};
  args.row = memory.template make<std::int64_t>(order.size());
  teaching_rows(memory.queue(), args);
  return memory.get(args.row, order.size());
}

template <typename Memory>
void twins_of_teaching_rows() {
  Draws draws(15);
  for (const int rows : kTwinSizes) {
    std::vector<std::int64_t> order;
    std::vector<std::uint8_t> mask(400), legal(1200);
    for (int i = 0; i < rows; ++i) order.push_back(draws.below(200));
    for (std::uint8_t& each : mask) each = static_cast<std::uint8_t>(draws.below(2));
    for (std::uint8_t& each : legal) each = static_cast<std::uint8_t>(draws.below(2));
    EXPECT_EQ(run_teaching_rows(Memory(), order, mask, legal, 3),
              run_teaching_rows(HostMemory(), order, mask, legal, 3));
  }
}

struct Twins {
  const char* name;
  void (*compare)();
};

template <typename Memory>
std::vector<Twins> all_twins() {
  return {
      {"Returns", twins_of_returns<Memory>},
      {"Running", twins_of_running<Memory>},
      {"Columns", twins_of_columns<Memory>},
      {"Sample", twins_of_sample<Memory>},
      {"SampledRows", twins_of_sampled_rows<Memory>},
      {"RandomActions", twins_of_random_actions<Memory>},
      {"Loss", twins_of_loss<Memory>},
      {"LossRows", twins_of_loss_rows<Memory>},
      {"NoiseGradient", twins_of_noise_gradient<Memory>},
      {"Episodes", twins_of_episodes<Memory>},
      {"Clock", twins_of_clock<Memory>},
      {"AppendedEpisodes", twins_of_appended_episodes<Memory>},
      {"Opponents", twins_of_opponents<Memory>},
      {"Tiles", twins_of_tiles<Memory>},
      {"Games", twins_of_games<Memory>},
      {"FindChoice", twins_of_find_choice<Memory>},
      {"Watch", twins_of_watch<Memory>},
      {"Evidence", twins_of_evidence<Memory>},
      {"AssignMinibatches", twins_of_assign_minibatches<Memory>},
      {"Sequences", twins_of_sequences<Memory>},
      {"TeachingRows", twins_of_teaching_rows<Memory>},
      {"Replay", twins_of_replay<Memory>},
      {"Td", twins_of_td<Memory>},
      {"Actor", twins_of_actor<Memory>},
      {"Critics", twins_of_critics<Memory>},
      {"GatheredRows", twins_of_gathered_rows<Memory>},
      {"TableLayer", twins_of_table_layer<Memory>},
      {"TableBlocks", twins_of_table_blocks<Memory>},
      {"LayerNorm", twins_of_layer_norm<Memory>},
      {"Cells", twins_of_cells<Memory>},
      {"HiddenGradients", twins_of_hidden_gradients<Memory>},
      {"GradientProducts", twins_of_gradient_products<Memory>},
      {"Chains", twins_of_chains<Memory>},
      {"Perceptrons", twins_of_perceptrons<Memory>},
      {"Entities", twins_of_entities<Memory>},
      {"Pool", twins_of_pool<Memory>},
      {"Values", twins_of_values<Memory>},
      {"ReductionsOfTheSameBitsEveryTime", twins_of_reductions_of_the_same_bits_every_time<Memory>},
      {"Adam", twins_of_adam<Memory>},
  };
}

}  // namespace wd
