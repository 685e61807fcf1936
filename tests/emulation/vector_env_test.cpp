// vector_env_test.cpp: environments whose caller brings the actions, on the emulated GPU and on the CPU.
#include "wd/vector_env.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/trainer/graph_cases.h"
#include "wd/experiment.h"
#include "wd/trainer.h"

namespace wd {
namespace {

constexpr int kReplicas = 5, kSteps = 40;

std::vector<at::Tensor> tensors_of(const VectorEnv& env) {
  std::vector<at::Tensor> all = {env.all().terminated, env.all().truncated, env.all().reset};
  for (const VectorEnv::RoleRows& role : env.roles())
    for (const at::Tensor& tensor :
         {role.observation, role.reward, role.active, role.terminated, role.action_mask})
      if (tensor.defined()) all.push_back(tensor);
  return all;
}

class VectorEnvs : public testing::TestWithParam<std::tuple<const char*, AutoReset>> {};

// The same tensors in every step, with the numbers of the CPU.
TEST_P(VectorEnvs, AreThoseOfTheCpuInTheSameMemory) {
  const auto& [name, mode] = GetParam();
  const Experiment setup = load_experiment(name, {"trainer.device=cpu", "env.episode_length=7"});
  const auto make = [&](Device device) {
    ReplicasOptions options = replicas_options(setup.config, device);
    options.num_envs = kReplicas;
    return VectorEnv(*setup.environment, options, mode);
  };
  VectorEnv cpu = make({}), gpu = make(kGpu);
  EXPECT_THROW(gpu.step(), UsageError);
  cpu.restart(3);
  gpu.restart(3);
  std::vector<const void*> pointers;
  for (const at::Tensor& tensor : tensors_of(gpu)) pointers.push_back(tensor.const_data_ptr());
  at::manual_seed(1);
  int ends = 0;
  for (int t = 0; t < kSteps; ++t) {
    for (std::size_t r = 0; r < cpu.roles().size(); ++r) {
      cpu.roles()[r].action.copy_(
          at::randint(0, cpu.roles()[r].role->action.heads[0], cpu.roles()[r].action.sizes()));
      gpu.roles()[r].action.copy_(cpu.roles()[r].action);
    }
    cpu.step();
    gpu.step();
    const std::vector<at::Tensor> expected = tensors_of(cpu), found = tensors_of(gpu);
    for (std::size_t k = 0; k < expected.size(); ++k) {
      EXPECT_EQ(found[k].const_data_ptr(), pointers[k]) << "tensor " << k;
      EXPECT_TRUE(at::equal(expected[k], found[k].cpu())) << "step " << t << ", tensor " << k;
    }
    const at::Tensor ended = at::logical_or(cpu.all().terminated, cpu.all().truncated);
    ends += ended.sum().item<int>();
    if (mode == AutoReset::kSameStep && ended.any().item<bool>()) {
      for (std::size_t r = 0; r < cpu.roles().size(); ++r) {
        const at::Tensor a = cpu.roles()[r].last_observation, b = gpu.roles()[r].last_observation.cpu();
        EXPECT_TRUE(at::equal(a.index({ended}), b.index({ended}))) << "step " << t << ", role " << r;
      }
    }
    if (mode == AutoReset::kDisabled && t % 3 == 0) {
      cpu.reset(ended);
      gpu.reset(ended);
    }
  }
  EXPECT_GT(ends, kReplicas);
}

INSTANTIATE_TEST_SUITE_P(Modes, VectorEnvs,
                         testing::Combine(testing::Values("cartpole", "tag_gridworld", "simple_spread"),
                                          testing::Values(AutoReset::kNextStep, AutoReset::kSameStep,
                                                          AutoReset::kDisabled)));

}  // namespace
}  // namespace wd
