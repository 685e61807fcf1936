// launches_test.cpp: how many launches an update of the replay algorithms is. On a GPU an update of a small
// batch takes the time of its launches.
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "src/base/join.h"
#include "src/emulator/streams.h"
#include "tests/trainer/graph_cases.h"

namespace wd {
namespace {

using Launches = std::map<std::string, int>;

struct UpdateCase {
  const char *name, *env, *policy;
  int launches;  // of two updates
  const char* setting = "trainer.precision=fp32";
  const char* model = "";
};

// Networks of 2 x 64 with batches of 256.
const UpdateCase kCases[] = {
    {"sac", "pendulum", "algorithm: SAC", 116},
    {"sac_bf16", "pendulum", "algorithm: SAC", 106, "trainer.precision=bf16"},
    {"td3", "pendulum", "algorithm: TD3", 84},
    {"td3_quantiles_bf16", "pendulum", "algorithm: TD3, num_critics: 3", 80, "trainer.precision=bf16",
     ", quantiles: 5, critic_dims: [36, 20]"},
    {"ddpg", "pendulum", "algorithm: DDPG", 112},
    {"sac_choices", "cartpole", "algorithm: SAC", 92},
    {"dqn", "cartpole", "algorithm: DQN", 48},
    {"dqn_bf16", "cartpole", "algorithm: DQN", 30, "trainer.precision=bf16"},
};

// So many updates in an iteration.
Experiment training_of(const UpdateCase& of, int updates) {
  const std::string policy =
      concat("policy={shared: {", of.policy, ", batch_size: 256, replay_ratio: ", 8 * updates,
             ", buffer_size: 3000, learning_starts: 0, ", "model: {fc_dims: [64, 64]", of.model, "}}}");
  return make_setup(of.env, {"trainer.num_envs=4", "trainer.train_batch_size=32", "trainer.cuda_graphs=true",
                             of.setting, policy});
}

Launches captured(const UpdateCase& of, int updates) {
  emulation::captured_launches().clear();
  train_with(training_of(of, updates), 4);
  return emulation::captured_launches();
}

class EmulatedUpdate : public testing::TestWithParam<UpdateCase> {};

// The actor of TD3 moves in every second update.
TEST_P(EmulatedUpdate, HasSoManyLaunches) {
  Launches of_two = captured(GetParam(), 4);
  for (const auto& [name, count] : captured(GetParam(), 2)) of_two[name] -= count;
  std::erase_if(of_two, [](const auto& one) { return one.second == 0; });
  int total = 0;
  std::vector<std::string> lines;
  for (const auto& [name, count] : of_two) {
    total += count;
    lines.push_back(concat("  ", count, ' ', name));
  }
  std::cout << GetParam().name << ": " << total << " launches in two updates:\n" << join(lines, "\n") << "\n";
  EXPECT_EQ(total, GetParam().launches) << join(lines, "\n");
}

// Critics that are computed together learn what they learn one by one.
TEST_P(EmulatedUpdate, AgreesWithTheCpu) {
  const Experiment training = training_of(GetParam(), 4);
  const auto parameters_on = [&](Device device) {
    Trainer trainer(training.config, *training.environment, device);
    trainer.iterate();
    const Policy& policy = trainer.policies()[0];
    std::vector<at::Tensor> all = {policy.parameters().cpu()};
    if (policy.critics() != nullptr) {
      all.push_back(policy.critics()->parameters().cpu());
      EXPECT_EQ(policy.critics()->together() != nullptr, device.is_cuda() && policy.critic_shape().count > 1);
    }
    return all;
  };
  const std::vector<at::Tensor> cpu = parameters_on({}), gpu = parameters_on(kGpu);
  const double tolerance = std::string(GetParam().setting).ends_with("bf16") ? 5e-4 : 1e-4;
  for (std::size_t k = 0; k < cpu.size(); ++k)
    EXPECT_LT((cpu[k] - gpu[k]).abs().max().item<double>(), tolerance) << k;
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EmulatedUpdate, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace wd
