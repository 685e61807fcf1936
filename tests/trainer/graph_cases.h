// graph_cases.h: trainings that must give the same results with graphs and without, on a GPU and on the
// emulated one.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/device/device.h"
#include "src/device/graph.h"
#include "src/device/pace.h"
#include "src/recorded/recording.h"
#include "src/trainer/evidence.h"
#include "src/trainer/injected_faults.h"
#include "tests/support.h"
#include "tests/trainer/staged.h"
#include "wd/trainer.h"

namespace wd {

inline constexpr Device kGpu = {DeviceKind::kCuda, 0};

// A folder of this process that is gone after it.
struct OwnFolder {
  std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / ("graph_cases_" + std::to_string(::getpid()));
  ~OwnFolder() {
    std::error_code none;
    std::filesystem::remove_all(path, none);
  }
};

// Records rollouts of an untrained policy `shared` in `env`, and returns their folder.
inline std::string recording_of(const std::string& env, std::vector<std::string> settings) {
  constexpr int kRollouts = 4;
  static const OwnFolder own;
  const std::filesystem::path folder = own.path / env;
  std::filesystem::remove_all(folder);
  settings.push_back("policy={shared: {algorithm: A2C}}");
  const Experiment setup = make_setup(env, settings);
  Trainer trainer(setup.config, *setup.environment, {});
  PolicyBuffers& buffers = trainer.trajectory().policies()[0];
  const int steps = trainer.trajectory().steps();
  RecordingWriter writer(folder / "shared", buffers,
                         recording_metadata(setup.config.name, setup.environment->spec(), buffers),
                         kRollouts * steps, 1 << 20);
  for (int i = 0; i < kRollouts; ++i) {
    trainer.rollout();
    writer.append(steps);
  }
  return folder.string();
}

struct GraphCase {
  const char *name, *env, *policy;
  const char* setting = "trainer.precision=fp32";
  bool offline = false;  // learns from a recording
  bool table = false;    // of observations

  Experiment setup(bool graphs, const std::vector<std::string>& size = {
                                    "trainer.num_envs=64", "trainer.train_batch_size=640"}) const {
    std::vector<std::string> settings = size;
    settings.insert(settings.end(),
                    {setting, graphs ? "trainer.cuda_graphs=true" : "trainer.cuda_graphs=false", policy});
    if (table) settings.push_back("trainer.observations=table");
    if (offline) settings.push_back("trainer.offline=" + recording_of(env, size));
    return make_setup(env, settings);
  }
};

inline constexpr GraphCase kGraphCases[] = {
    {"a2c", "tag_gridworld", "policy={tagger: {algorithm: A2C}, runner: {algorithm: A2C}}"},
    {"kept", "tag_continuous",
     "policy={tagger: {algorithm: A2C, reuse_activations: true}, runner: {algorithm: A2C}}"},
    {"ppo", "cartpole", "policy={shared: {algorithm: PPO, target_kl: 0.01, lr: [[0, 0.01], [4000, 0.001]]}}"},
    {"gaussian", "pendulum",
     "policy={shared: {algorithm: PPO, normalize_return: true, gae_lambda: 1, adaptive_kl: 0.01}}"},
    {"tf32", "tag_gridworld", "policy={tagger: {algorithm: A2C}, runner: {algorithm: PPO}}",
     "trainer.precision=tf32"},
    {"bf16", "tag_continuous", "policy={tagger: {algorithm: A2C}, runner: {algorithm: PPO}}",
     "trainer.precision=bf16"},
    {"chain_bf16", "tag_gridworld",
     "policy={tagger: {algorithm: A2C, model: {fc_dims: [64, 64]}}, "
     "runner: {algorithm: PPO, model: {fc_dims: [32, 128, 128]}}}",
     "trainer.precision=bf16"},
    {"tables", "tag_continuous", "policy={tagger: {algorithm: A2C}, runner: {algorithm: PPO}}",
     "trainer.observations=table"},
    {"perceptron_bf16", "tag_continuous",
     "policy={tagger: {algorithm: A2C, model: {input: entities, fc_dims: [64, 64]}}, "
     "runner: {algorithm: PPO, model: {fc_dims: [64, 64]}}}",
     "trainer.precision=bf16"},
    {"tables_bf16", "tag_continuous",
     "policy={tagger: {algorithm: A2C, reuse_activations: true, model: {fc_dims: [64, 64]}}, "
     "runner: {algorithm: PPO, model: {activation: tanh, fc_dims: [36, 20]}}}",
     "trainer.precision=bf16", false, true},
    {"layer_norm", "tag_continuous",
     "policy={tagger: {algorithm: A2C, reuse_activations: true, model: {layer_norm: true}}, "
     "runner: {algorithm: PPO, model: {layer_norm: true, activation: tanh}}}",
     "trainer.observations=table"},
    {"layer_norm_bf16", "tag_continuous",
     "policy={tagger: {algorithm: A2C, model: {layer_norm: true, activation: tanh, fc_dims: [36, 20]}}, "
     "runner: {algorithm: PPO, model: {layer_norm: true}}}",
     "trainer.precision=bf16"},
    {"no_hidden_layer_bf16", "cartpole", "policy={shared: {algorithm: PPO, model: {fc_dims: []}}}",
     "trainer.precision=bf16"},
    {"pqn", "tag_continuous",
     "policy={tagger: {algorithm: PQN, epsilon: [[0, 1], [4000, 0.1]]}, runner: {algorithm: A2C}}"},
    // With 4 replicas of 8 steps they fill first, and the target moves in every second iteration.
    {"dqn", "tag_gridworld",
     "policy={tagger: {algorithm: DQN, batch_size: 64, replay_ratio: 2, buffer_size: 3000, "
     "learning_starts: 64, target_every: 64, prioritized: true, n_step: 2, "
     "importance_exponent: [[0, 0.4], [9000, 1]]}, runner: {algorithm: PPO}}"},
    {"dqn_bf16", "cartpole",
     "policy={shared: {algorithm: DQN, batch_size: 4, replay_ratio: 0.5, buffer_size: 3000, "
     "learning_starts: 0, target_every: 20, tau: 0.5, model: {quantiles: 4}}}",
     "trainer.precision=bf16"},
    {"dqn_table", "tag_continuous",
     "policy={tagger: {algorithm: DQN, batch_size: 4, replay_ratio: 0.5, buffer_size: 3000, "
     "learning_starts: 0, target_every: 400}, runner: {algorithm: A2C}}",
     "trainer.observations=table"},
    // 3 updates in an iteration, and the actor moves at every second one.
    {"td3", "pendulum",
     "policy={shared: {algorithm: TD3, batch_size: 64, replay_ratio: 3, buffer_size: 3000, "
     "learning_starts: 64, random_steps: 700, noise: 0.3, noise_damping: 0.2, n_step: 2, prioritized: "
     "true}}"},
    {"ddpg_bf16", "continuous_mountain_car",
     "policy={shared: {algorithm: DDPG, batch_size: 4, replay_ratio: 0.5, buffer_size: 3000, "
     "learning_starts: 0, clip_grad_norm: true, model: {critic_dims: [20], quantiles: 3}}}",
     "trainer.precision=bf16"},
    {"sac", "pendulum",
     "policy={shared: {algorithm: SAC, batch_size: 64, replay_ratio: 3, buffer_size: 3000, "
     "learning_starts: 0, random_steps: 700, lr: [[0, 0.01], [4000, 0.001]]}}"},
    {"sac_choices", "tag_gridworld",
     "policy={tagger: {algorithm: SAC, batch_size: 64, replay_ratio: 3, buffer_size: 3000, "
     "learning_starts: 64}, runner: {algorithm: SAC, batch_size: 4, replay_ratio: 0.5, buffer_size: 3000, "
     "learning_starts: 0, tune_temperature: false}}"},
    {"sac_table", "tag_continuous",
     "policy={tagger: {algorithm: SAC, batch_size: 4, replay_ratio: 0.5, buffer_size: 3000, "
     "learning_starts: 0}, runner: {algorithm: A2C}}",
     "trainer.observations=table"},
    {"normalized", "tag_continuous",
     "policy={tagger: {algorithm: A2C, reuse_activations: true, normalize_value: true, normalize_reward: "
     "true}, "
     "runner: {algorithm: PPO, normalize_value: true, model: {separate_value: true}}}"},
    {"normalized_bf16", "tag_continuous",
     "policy={tagger: {algorithm: A2C, normalize_value: true}, "
     "runner: {algorithm: PPO, normalize_value: true, normalize_reward: true, model: {fc_dims: []}}}",
     "trainer.precision=bf16"},
    {"central", "seen",
     "policy={shared: {algorithm: PPO, normalize_value: true, num_minibatches: 2, model: {separate_value: "
     "true, reads: [observation, agent_id], critic_reads: [board, agent_id]}}}"},
    {"central_bf16", "seen",
     "policy={shared: {algorithm: SAC, batch_size: 4, replay_ratio: 0.5, buffer_size: 3000, learning_starts: "
     "0, model: {critic_reads: [observation, board, agent_id]}}}",
     "trainer.precision=bf16"},
    {"central_kept", "seen",
     "policy={shared: {algorithm: A2C, reuse_activations: true, model: {separate_value: true, layer_norm: "
     "true, fc_dims: [20], critic_reads: [observation, board, agent_id]}}}"},
    {"qmix", "simple_spread",
     "policy={shared: {algorithm: QMIX, batch_size: 64, replay_ratio: 2, buffer_size: 3000, "
     "learning_starts: 64, target_every: 64, n_step: 2, prioritized: true, mixer_dim: 5, hypernet_dims: "
     "[12], "
     "model: {critic_reads: [state], fc_dims: [20]}}}"},
    {"pqn_vdn", "simple_spread", "policy={shared: {algorithm: PQN-VDN, num_minibatches: 2}}"},
    {"pqn_qmix_bf16", "simple_spread",
     "policy={shared: {algorithm: PQN-QMIX, num_minibatches: 2, mixer_dim: 5, hypernet_dims: [12], model: "
     "{critic_reads: [state], fc_dims: [20]}}}",
     "trainer.precision=bf16"},
    {"seats", "tag_gridworld",
     "policy={a: {algorithm: PPO, agents: [tagger 0, tagger 2-9]}, b: {algorithm: A2C, agents: [tagger 1]}, "
     "runner: {algorithm: PPO}}"},
    {"staged", "tag_gridworld", "policy={tagger: {algorithm: STAGED, fill: 2}, runner: {algorithm: PPO}}"},
    {"values", "tag_gridworld",
     "policy={tagger: {algorithm: PQN, model: {dueling: true}}, runner: {algorithm: PQN, model: {input: "
     "choices}}}"},
    {"pqn_tables", "tag_continuous", "policy={tagger: {algorithm: PQN}, runner: {algorithm: PQN}}",
     "trainer.observations=table"},
    {"entities", "tag_continuous",
     "policy={tagger: {algorithm: PPO, num_epochs: 2, num_minibatches: 2, normalize_value: true, model: "
     "{input: "
     "entities}}, runner: {algorithm: A2C, reuse_activations: true, model: {input: entities, nearest: 2}}}",
     "trainer.observations=table"},
    {"entities_bf16", "tag_continuous",
     "policy={tagger: {algorithm: A2C, model: {input: entities}}, runner: {algorithm: PPO, model: {input: "
     "entities, pool: mean_max}}}",
     "trainer.precision=bf16"},
    {"gsde", "pendulum",
     "policy={shared: {algorithm: PPO, model: {distribution: gsde, noise_every: 3, initial_log_std: -1}}}"},
    {"normalized_inputs", "tag_continuous",
     "policy={tagger: {algorithm: A2C, model: {normalize_input: true}}, runner: {algorithm: PPO, "
     "normalize_value: "
     "true, model: {normalize_input: true, separate_value: true}}}"},
    {"gru", "cartpole",
     "policy={shared: {algorithm: PPO, num_minibatches: 2, model: {type: gru, width: 16}}}"},
    {"lstm_sequences", "tag_gridworld",
     "policy={tagger: {algorithm: PPO, num_minibatches: 4, model: {type: lstm, width: 12, sequence_length: 4, "
     "separate_value: true}}, runner: {algorithm: A2C, model: {type: mingru, width: 20}}}",
     "trainer.precision=bf16"},
    {"dqn_windows", "tag_gridworld",
     "policy={tagger: {algorithm: DQN, batch_size: 32, replay_ratio: 2, buffer_size: 3000, "
     "learning_starts: 0, target_every: 64, prioritized: true, n_step: 2, burn_in: 1, model: {type: gru, "
     "width: 12, sequence_length: 4}}, runner: {algorithm: PPO}}"},
    {"sac_windows", "pendulum",
     "policy={shared: {algorithm: SAC, batch_size: 16, replay_ratio: 3, buffer_size: 3000, "
     "learning_starts: 0, burn_in: 2, model: {type: mingru, width: 12, sequence_length: 4}}}"},
    {"pqn_lstm", "tag_continuous",
     "policy={tagger: {algorithm: PQN, num_minibatches: 2, model: {type: lstm, width: 12}}, runner: "
     "{algorithm: PQN, num_minibatches: 4, model: {type: lstm, width: 8, dueling: true}}}"},
    {"offline", "cartpole",
     "policy={shared: {algorithm: DQN, batch_size: 16, replay_ratio: 0.5, target_every: 120}}",
     "trainer.precision=fp32", true}};

// Networks of LibTorch's, which the emulated GPU cannot place.
inline constexpr GraphCase kModuleCases[] = {
    {"module", "cartpole",
     "policy={shared: {algorithm: PPO, num_minibatches: 2, model: {type: stepped_gru, width: 16}}}"}};

inline GraphCase graph_case(std::string_view name) {
  return *std::ranges::find_if(kGraphCases, [&](const GraphCase& one) { return one.name == name; });
}

inline std::string name_of(const testing::TestParamInfo<GraphCase>& info) { return info.param.name; }

struct Trained {
  std::vector<at::Tensor> parameters;
  std::vector<std::pair<std::string, double>> metrics;
};

inline Trained train_with(const Experiment& setup, int iterations, Device device = kGpu) {
  Trainer trainer(setup.config, *setup.environment, device);
  Trained result;
  for (int i = 0; i < iterations; ++i) {
    trainer.iterate();
    if (i % 3 != 2) continue;
    const MetricsRow metrics = trainer.take_metrics();
    for (const auto& [name, value] : metrics.values())
      if (!name.starts_with("time/")) result.metrics.emplace_back(name, value);
  }
  for (const Policy& policy : trainer.policies()) result.parameters.push_back(policy.parameters().cpu());
  return result;
}

inline void expect_same_bits(const Trained& a, const Trained& b) {
  ASSERT_EQ(a.parameters.size(), b.parameters.size());
  for (std::size_t p = 0; p < a.parameters.size(); ++p)
    EXPECT_TRUE(at::equal(a.parameters[p], b.parameters[p])) << p;
  ASSERT_EQ(a.metrics.size(), b.metrics.size());
  for (std::size_t k = 0; k < a.metrics.size(); ++k) {
    const auto& [name, value] = a.metrics[k];
    EXPECT_TRUE(b.metrics[k].second == value || (std::isnan(value) && std::isnan(b.metrics[k].second)))
        << name << ": " << value << " and " << b.metrics[k].second;
  }
}

// The parameters, and those of critics, with the value's output in units of rewards: another mean and
// deviation of values changes the output layer, but not what the policy computes.
inline at::Tensor in_units_of_rewards(const Policy& policy) {
  std::vector<at::Tensor> parts;
  for (const NamedTensor& named : policy.named_parameters()) {
    const bool scaled = policy.value_norm().defined() && named.name.starts_with("value_head.");
    at::Tensor part = named.tensor.cpu();
    if (scaled) part = part * policy.value_norm().cpu()[1];
    if (scaled && named.name.ends_with("bias")) part = part + policy.value_norm().cpu()[0];
    parts.push_back(part.flatten());
  }
  if (policy.critics() != nullptr) parts.push_back(policy.critics()->parameters().cpu());
  return at::cat(parts);
}

inline void expect_nothing_learned_from_what_is_not_finite(const Experiment& setup) {
  for (const std::string tensor : {"observation", "last observation", "reward", "loss", "gradient"}) {
    Trainer trainer(setup.config, *setup.environment, kGpu);
    for (int i = 0; i < 3; ++i) trainer.iterate();
    const at::Tensor before = in_units_of_rewards(trainer.policies()[0]);
    const at::Tensor state = trainer.replicas().blocks()[0].cpu();
    iterate_with_faults(trainer, {}, {.poison = tensor});
    const at::Tensor action = trainer.trajectory().policies()[0].action.select(1, 0).cpu();
    for (int i = 0; i < 3; ++i) trainer.iterate();
    const std::optional<Evidence> evidence = evidence_of(trainer);
    EXPECT_EQ(evidence.has_value(), tensor != "loss" && tensor != "gradient");
    if (evidence) {
      EXPECT_EQ(evidence->iteration, 4);
      EXPECT_EQ(evidence->replica, 0u);
      EXPECT_TRUE(at::equal(evidence->block, state)) << "at the start of the rollout";
      const std::int64_t steps = tensor == "reward"             ? 1
                                 : tensor == "last observation" ? trainer.trajectory().steps()
                                                                : 0;
      EXPECT_TRUE(at::equal(evidence->policies[0].action, action.narrow(0, 0, steps)));
    }
    const Policy& policy = trainer.policies()[0];
    const at::Tensor after = in_units_of_rewards(policy);
    EXPECT_TRUE(policy.value_norm().defined() ? at::allclose(before, after, 1e-5, 1e-6)
                                              : at::equal(before, after))
        << tensor;
    EXPECT_THROW(trainer.check(), std::runtime_error) << tensor;
  }
}

// Each branch multiplies 1 by 3 twenty times, starting from the value written before it; the code after it
// adds the results.
inline void expect_branches_in_order(at::DeviceType type) {
  const at::Tensor parts = at::zeros({3, 1 << 10}, at::TensorOptions().device(type).dtype(at::kDouble));
  at::Tensor sum = at::zeros({1 << 10}, parts.options());
  for (const bool captured : {false, true}) {
    Graph graph(kGpu, captured);
    Branches branches(kGpu);
    for (int i = 0; i < 10; ++i) {
      graph.run([&] {
        parts.fill_(1.0);
        branches.each(3, [&](std::size_t k) {
          for (int step = 0; step < 20; ++step) parts[static_cast<std::int64_t>(k)].mul_(3.0);
        });
        at::sum_out(sum, parts, 0);
        parts.zero_();
      });
      EXPECT_TRUE(at::equal(sum.cpu(), at::full({1 << 10}, 3.0 * std::pow(3.0, 20), at::kDouble))) << i;
    }
  }
}

inline void expect_usable_after_a_failed_capture(at::DeviceType type) {
  const at::Tensor data = at::ones({1 << 10}, at::TensorOptions().device(type));
  Graph broken(kGpu, true);
  const auto wait = [&] { static_cast<void>((data + data).sum().item<float>()); };
  broken.run(wait);
  EXPECT_THROW(broken.run(wait), std::runtime_error);
  const Experiment setup = make_setup("cartpole", {"trainer.num_envs=8", "trainer.train_batch_size=80"});
  Trainer trainer(setup.config, *setup.environment, kGpu);  // allocates, captures and replays
  for (int i = 0; i < 4; ++i) trainer.iterate();
  EXPECT_NO_THROW(trainer.check());
}

inline void expect_captured_again_after_a_reset(at::DeviceType type) {
  const at::Tensor sum = at::zeros({1}, at::TensorOptions().device(type));
  Graph graph(kGpu, true);
  int enqueued = 0;
  const auto add = [&] {
    ++enqueued;
    sum.add_(1.0f);
  };
  for (int i = 0; i < 3; ++i) graph.run(add);
  EXPECT_EQ(enqueued, 2);
  graph.reset();
  graph.reset();
  for (int i = 0; i < 2; ++i) graph.run(add);
  EXPECT_EQ(enqueued, 3);
  EXPECT_EQ(sum.item<float>(), 5.0f);
}

inline void expect_host_at_most_one_iteration_ahead(at::DeviceType type, std::int64_t size) {
  const at::Tensor data = at::ones({size}, at::TensorOptions().device(type));
  Pace pace({make_milestone(kGpu), make_milestone(kGpu)});
  c10::Event ends[] = {c10::Event(type), c10::Event(type)};  // of iterations
  const c10::impl::VirtualGuardImpl gpu(type);
  for (int i = 0; i < 5; ++i) {
    for (int k = 0; k < 100; ++k) data.mul_(1.0f);
    ends[i % 2].record(gpu.getStream({type, 0}));
    pace.iteration_enqueued(false);
    EXPECT_TRUE(i == 0 || ends[(i + 1) % 2].query()) << i;
  }
}

}  // namespace wd
