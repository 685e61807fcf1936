// record.h: rollouts of random numbers, and files with all inputs and outputs of an update, which Python's
// torch recomputes.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "src/base/join.h"
#include "src/rollout/minibatches.h"
#include "tests/kernels/random_data.h"
#include "tests/schedule.h"
#include "wd/algorithm.h"
#include "wd/algorithms.h"
#include "wd/detail/blocks.h"
#include "wd/model.h"
#include "wd/safetensors.h"

namespace wd {

inline constexpr int kSteps = 12, kEnvs = 7, kAgents = 3, kObservation = 6, kTimeLimit = 6;
inline constexpr int kIterations = 6;  // of algorithms with a replay memory
inline constexpr int kChunkRows = 64;  // trainer.chunk_rows
inline constexpr std::uint64_t kSeed = 21;
inline constexpr std::int64_t kIteration = 3, kEnvSteps = 1000;

inline TrainingClock clock_then() {
  TrainingClock clock({});
  clock.set(kIteration, kEnvSteps);
  return clock;
}

inline Spec spec_of(const ActionSpace& action, bool masks) {
  Spec spec;
  spec.roles = {{.name = "agent",
                 .count = kAgents,
                 .observation = {{"o", kObservation}},
                 .action = action,
                 .action_mask = masks}};
  spec.time_limit = kTimeLimit;
  return spec;
}

// Remembers two rollouts and a few steps more, so that the fourth one overwrites the oldest.
inline void set_common(OffPolicySettings& settings, ModelSettings& model) {
  settings.gamma = 0.9;
  settings.reward_scale = 0.5;
  settings.lr = 0.01;
  settings.max_grad_norm = 0.2;
  settings.adam_epsilon = 1e-4;  // large, so that Adam's step depends on the gradient's scale
  settings.replay.buffer_size = (2 * kSteps + 3) * kEnvs;
  settings.replay.batch_size = 2 * kEnvs;
  settings.replay.replay_ratio = 0.5;
  settings.replay.learning_starts = kSteps * kEnvs + 1;
  model.fc_dims = {16, 8};
  model.activation = kTanh;
}

inline void set_common(PqnSettings& pqn, ModelSettings& model) {
  pqn.gamma = 0.97;
  pqn.lambda = 0.8;
  pqn.reward_scale = 0.3;
  pqn.lr = 0.01;
  pqn.epsilon = 0.6;
  pqn.max_grad_norm = 0.2;
  pqn.num_epochs = 2;
  pqn.num_minibatches = 3;
  pqn.adam_epsilon = 1e-4;
  model.fc_dims = {16, 8};
  model.activation = kTanh;
}

std::string text(auto value) { return concat(value); }

inline TensorMetadata optimizer_metadata(const OptimizerSettings& settings, const ActionSpace& action) {
  return {
      {"heads", join(action.heads, " ")},
      {"lr", text(value_at(settings.lr, kEnvSteps))},
      {"max_grad_norm", text(settings.clip_grad_norm ? value_at(settings.max_grad_norm, kEnvSteps) : 0.0)},
      {"adam_epsilon", text(settings.adam_epsilon)}};
}

// `more`: what the algorithm has beside what all have that learn from a replay memory.
inline TensorMetadata replay_metadata(const OffPolicySettings& settings, const ActionSpace& action,
                                      TensorMetadata more) {
  more.merge(optimizer_metadata(settings, action));
  more.merge(TensorMetadata{{"gamma", text(settings.gamma)},
                            {"reward_scale", text(settings.reward_scale)},
                            {"n_step", text(settings.replay.n_step)},
                            {"buffer_size", text(settings.replay.buffer_size)},
                            {"batch_size", text(settings.replay.batch_size)},
                            {"replay_ratio", text(settings.replay.replay_ratio)},
                            {"learning_starts", text(settings.replay.learning_starts)},
                            {"prioritized", text(settings.replay.prioritized ? 1 : 0)},
                            {"priority_exponent", text(settings.replay.priority_exponent)},
                            {"importance_exponent", text(value_at(settings.replay.importance_exponent, 0))},
                            {"seed", text(kSeed)}});
  return more;
}

inline TensorMetadata pqn_metadata(const PqnSettings& pqn, const ActionSpace& action, TensorMetadata more) {
  more.merge(optimizer_metadata(pqn, action));
  more.merge(TensorMetadata{
      {"gamma", text(pqn.gamma)}, {"decay", text(pqn.lambda)}, {"reward_scale", text(pqn.reward_scale)}});
  return more;
}

// Makes one update per iteration, of a batch whose rows are divided into blocks.
inline void learn_in_blocks(ReplaySettings& replay) {
  replay.prioritized = true;
  replay.batch_size = 7 * kEnvs;
  replay.replay_ratio = 7.0 / kSteps;
  EXPECT_GE(Blocks::of(replay.batch_size * kAgents, false, kChunkRows, 1).count, 3);
}

// Named tensors to be written to a file.
class Record {
 public:
  void add(const std::string& name, const at::Tensor& tensor) {
    const at::Tensor copy = tensor.contiguous().clone();
    copies_.push_back(copy);
    const auto bytes = static_cast<std::size_t>(copy.numel() * copy.element_size());
    views_.push_back(
        {name, dtype(copy), copy.sizes().vec(), {static_cast<const std::byte*>(copy.data_ptr()), bytes}});
  }
  void add(const std::string& prefix, const Policy& policy, const at::Tensor& flat) {
    for (const NamedTensor& p : policy.named_parameters()) {
      const std::int64_t offset = p.tensor.storage_offset();
      add(prefix + p.name, flat.as_strided(p.tensor.sizes(), p.tensor.strides(), offset));
    }
  }
  void write(const std::filesystem::path& path, const TensorMetadata& metadata) const {
    write_safetensors(path, views_, metadata);
  }

 private:
  static std::string dtype(const at::Tensor& tensor) {
    switch (tensor.scalar_type()) {
      case at::kFloat:
        return "F32";
      case at::kDouble:
        return "F64";
      case at::kInt:
        return "I32";
      case at::kLong:
        return "I64";
      case at::kByte:
        return "U8";
      case at::kBFloat16:
        return "BF16";
      default:
        throw std::runtime_error("no name for this type");
    }
  }

  std::vector<at::Tensor> copies_;
  std::vector<TensorView> views_;
};

template <typename T>
void fill(const at::Tensor& tensor, const std::vector<T>& values) {
  ASSERT_EQ(tensor.numel(), static_cast<std::int64_t>(values.size()));
  std::copy(values.begin(), values.end(), tensor.data_ptr<T>());
}

// Fills observations, masks and what the environment would have written.
inline void fill_trajectory(Draws& draws, Trajectory& trajectory, bool as_warpdrives) {
  RolloutArrays rollout = random_rollout(draws, kSteps, kEnvs, kAgents, kTimeLimit);
  if (as_warpdrives) {
    for (std::size_t i = 0; i < rollout.terminated.size(); ++i) {
      rollout.terminated[i] |= rollout.truncated[i];
      rollout.truncated[i] = 0;
    }
    std::fill(rollout.active.begin(), rollout.active.end(), 1);
    std::fill(rollout.agent_terminated.begin(), rollout.agent_terminated.end(), 0);
  }
  PolicyBuffers& buffers = trajectory.policies()[0];
  const at::Tensor seen = buffers.observation.narrow(3, 0, kObservation);
  seen.copy_(at::tensor(draws.uniforms(seen.numel(), -2.0f, 2.0f)).view(seen.sizes()));
  fill(buffers.reward, rollout.reward);
  fill(buffers.active, rollout.active);
  fill(buffers.agent_terminated, rollout.agent_terminated);
  fill(trajectory.terminated(), rollout.terminated);
  fill(trajectory.truncated(), rollout.truncated);
  fill(trajectory.reset_step(), rollout.reset_step);
  if (buffers.restarted.defined()) {
    buffers.restarted[0].fill_(1);
    buffers.restarted.slice(0, 1).copy_(trajectory.reset_step().unsqueeze(2).expand({-1, -1, kAgents}));
  }
  if (!buffers.action_mask.defined()) return;
  std::vector<std::uint8_t> legal;
  for (std::int64_t row = 0; row < buffers.active.numel(); ++row) {
    for (const int choices : buffers.action_space.heads) {
      const int kept = draws.below(choices);
      for (int i = 0; i < choices; ++i) legal.push_back(i == kept || draws.one_in(2) ? 1 : 0);
    }
  }
  fill(buffers.action_mask, legal);
}

// Row indices of every minibatch of every epoch. They are read from a second trajectory whose log_prob holds
// row numbers.
inline void record_order(Record& record, const Spec& spec, const AlgorithmSettings& settings,
                         Sequences sequences) {
  Trajectory numbered({spec, Cast::of_roles(spec, {"agent"}, {0}), kSteps, kEnvs});
  PolicyBuffers& buffers = numbered.policies()[0];
  buffers.log_prob.copy_(at::arange(buffers.log_prob.numel(), at::kFloat).view(buffers.log_prob.sizes()));
  const TrainingShape shape{.num_envs = kEnvs,
                            .rollout_steps = kSteps,
                            .steps_together = std::max(sequences.length, 1),
                            .num_agents = kAgents};
  Minibatches minibatches(buffers, kSteps, kEnvs, settings.traits().minibatches, 0, sequences,
                          shape.share(settings.traits().row_limit));
  const TrainingClock clock = clock_then();
  for (int epoch = 0; epoch < settings.traits().epochs; ++epoch) {
    minibatches.shuffle(kSeed, clock.time(), epoch);
    for (int m = 0; m < settings.traits().minibatches; ++m) {
      record.add("order." + std::to_string(epoch) + "." + std::to_string(m),
                 minibatches.gather(m).log_prob.to(at::kLong));
    }
  }
}

// The buffers that an update reads, after prepare().
inline void record_rollout(Record& record, const Trajectory& trajectory) {
  const PolicyBuffers& buffers = trajectory.policies()[0];
  const std::vector<std::pair<std::string, at::Tensor>> tensors = {
      {"observation", buffers.observation.narrow(3, 0, kObservation)},
      {"action", buffers.action},
      {"active", buffers.active},
      {"value", buffers.value},
      {"log_prob", buffers.log_prob},
      {"reward", buffers.reward},
      {"agent_terminated", buffers.agent_terminated},
      {"terminated", trajectory.terminated()},
      {"truncated", trajectory.truncated()},
      {"reset_step", trajectory.reset_step()},
      {"advantage", buffers.advantage},
      {"target", buffers.target},
      {"mask", buffers.mask}};
  for (const auto& [name, tensor] : tensors) record.add(name, tensor);
  if (buffers.action_mask.defined()) record.add("action_mask", buffers.action_mask);
}

inline void record_metrics(Record& record, const std::string& prefix, const Learner& learner) {
  for (const auto& [name, value] : learner.algorithm().metrics())
    record.add(concat(prefix, "metric.", name), at::full({}, value, at::kDouble));
}

// The policy acts on what the trajectory holds, and learns from it once.
inline void record_update(Record& record, const Spec& spec, Policy& policy, Learner& learner,
                          Trajectory& trajectory, const AlgorithmSettings& settings) {
  PolicyBuffers& buffers = trajectory.policies()[0];
  const TrainingClock clock = clock_then();
  learner.begin_rollout(clock);
  for (int t = 0; t < kSteps; ++t)
    policy.act(buffers, t,
               {.seed = kSeed, .step = static_cast<std::uint64_t>(t), .exploration = learner.exploration()});
  policy.evaluate(buffers, kSteps);
  record.add("before.", policy, policy.parameters());
  prepare({&learner, 1});
  record_rollout(record, trajectory);
  record_order(record, spec, settings, policy.sequences(kSteps));
  ASSERT_TRUE(update({&learner, 1}, clock));
  record.add("after.", policy, policy.parameters());
  record_metrics(record, "", learner);
}

// The critics' parameters, if there are critics; and after an iteration, with SAC's temperature.
inline void add_critics(Record& record, const std::string& prefix, const Policy& policy) {
  if (policy.critics() == nullptr) return;
  for (const NamedTensor& named : policy.critics()->named_parameters())
    record.add(concat(prefix, "critics.", named.name), named.tensor);
}
inline void add_learned_critics(Record& record, const std::string& prefix, const Policy& policy,
                                const Learner& learner) {
  add_critics(record, prefix + "after.", policy);
  for (const NamedTensor& named : learner.algorithm().state())
    if (named.name == "log_temperature") record.add(prefix + named.name, named.tensor[0]);
}

// What the iterations of an algorithm have beside those of the others. Each is called with the prefix of the
// iteration's tensors.
struct OfIterations {
  std::function<void(Draws&)> fill = [](Draws&) {};  // what else its rollout reads
  std::function<void(const std::string&)> played = [](const std::string&) {};
  std::function<void(const std::string&)> learned = [](const std::string&) {};
};

// Iterations of an algorithm with a replay memory, with everything that is played, and measurements and
// priorities after each update.
inline void record_iterations(Record& record, Policy& policy, Learner& learner, Trajectory& trajectory,
                              const OfIterations& own = {}) {
  PolicyBuffers& buffers = trajectory.policies()[0];
  Draws draws(8);
  TrainingClock clock({});
  record.add("before.", policy, policy.parameters());
  for (int i = 0; i < kIterations; ++i) {
    const std::string prefix = concat(i, '.');
    clock.set(i, i * kSteps * kEnvs);
    fill_trajectory(draws, trajectory, false);
    own.fill(draws);
    learner.enter(i);
    learner.begin_rollout(clock);
    for (int t = 0; t < kSteps; ++t)
      policy.act(buffers, t,
                 {.seed = kSeed,
                  .step = static_cast<std::uint64_t>(i * kSteps + t),
                  .exploration = learner.exploration()});
    prepare({&learner, 1});
    for (const auto& [name, tensor] :
         {std::pair{"observation", buffers.observation.narrow(3, 0, kObservation)},
          std::pair{"action", buffers.action}, std::pair{"active", buffers.active},
          std::pair{"reward", buffers.reward}, std::pair{"agent_terminated", buffers.agent_terminated},
          std::pair{"terminated", trajectory.terminated()}, std::pair{"truncated", trajectory.truncated()},
          std::pair{"reset_step", trajectory.reset_step()}})
      record.add(prefix + name, tensor);
    if (buffers.action_mask.defined()) record.add(prefix + "action_mask", buffers.action_mask);
    own.played(prefix);
    ASSERT_TRUE(update({&learner, 1}, clock));
    record.add(prefix + "after.", policy, policy.parameters());
    record_metrics(record, prefix, learner);
    for (const NamedTensor& named : learner.algorithm().memory(i + 1))
      if (named.name == "priority") record.add(prefix + "priorities", named.tensor);
    own.learned(prefix);
  }
}

inline std::filesystem::path record_folder() {
  const char* const named = std::getenv("WD_RECORD_DIR");
  return named != nullptr ? std::filesystem::path(named) : std::filesystem::path(testing::TempDir());
}

}  // namespace wd
