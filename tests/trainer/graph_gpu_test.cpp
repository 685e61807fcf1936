// graph_gpu_test.cpp: training replayed from CUDA graphs gives the same results and does not touch the host.
#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <cmath>

#include "src/device/device.h"
#include "src/device/graph.h"
#include "src/device/pace.h"
#include "src/device/strict.h"
#include "src/trainer/injected_faults.h"
#include "tests/kernels/cuda_memory.h"
#include "tests/support.h"
#include "wd/trainer.h"

namespace wd {
namespace {

constexpr Device kGpu = {DeviceKind::kCuda, 0};

struct Case {
  const char *name, *env, *policy;
  const char* setting = "trainer.precision=fp32";
};

class Graphs : public testing::TestWithParam<Case> {
 protected:
  Experiment setup(bool graphs) const {
    return make_setup(GetParam().env,
                      {"trainer.num_envs=64", "trainer.train_batch_size=640", GetParam().setting,
                       graphs ? "trainer.cuda_graphs=true" : "trainer.cuda_graphs=false", GetParam().policy});
  }
};

struct Trained {
  std::vector<at::Tensor> parameters;
  std::vector<std::pair<std::string, double>> metrics;
};

Trained train_with(const Experiment& setup, int iterations) {
  Trainer trainer(setup.config, *setup.environment, kGpu);
  Trained result;
  for (int i = 0; i < iterations; ++i) {
    trainer.iterate();
    if (i % 3 != 2) continue;
    for (const auto& [name, value] : trainer.take_metrics().values())
      if (!name.starts_with("time/")) result.metrics.emplace_back(name, value);
  }
  for (const Policy& policy : trainer.policies()) result.parameters.push_back(policy.parameters().cpu());
  return result;
}

TEST_P(Graphs, GiveTheSameBitsAsLaunchesOneByOne) {
  WD_SKIP_WITHOUT_GPU();
  const Trained off = train_with(setup(false), 9), on = train_with(setup(true), 9);
  for (std::size_t p = 0; p < off.parameters.size(); ++p)
    EXPECT_TRUE(at::equal(off.parameters[p], on.parameters[p])) << p;
  ASSERT_EQ(off.metrics.size(), on.metrics.size());
  for (std::size_t k = 0; k < off.metrics.size(); ++k) {
    const auto& [name, value] = off.metrics[k];
    EXPECT_TRUE(on.metrics[k].second == value || (std::isnan(value) && std::isnan(on.metrics[k].second)))
        << name << ": " << value << " and " << on.metrics[k].second;
  }
}

TEST_P(Graphs, LeaveNothingToTheHost) {
  WD_SKIP_WITHOUT_GPU();
  const Experiment replayed = setup(true);
  Trainer trainer(replayed.config, *replayed.environment, kGpu);
  for (int i = 0; i < 3; ++i) trainer.iterate();
  static_cast<void>(trainer.take_metrics());
  StrictDevice strict(kGpu);
  strict.arm();
  for (int i = 0; i < 5; ++i) trainer.iterate();
  strict.disarm();
  EXPECT_NO_THROW(strict.check());
}

TEST_P(Graphs, LearnNothingFromWhatIsNotFinite) {
  WD_SKIP_WITHOUT_GPU();
  const Experiment replayed = setup(true);
  for (const std::string tensor : {"observation", "reward", "loss", "gradient"}) {
    Trainer trainer(replayed.config, *replayed.environment, kGpu);
    for (int i = 0; i < 3; ++i) trainer.iterate();
    const at::Tensor before = trainer.policies()[0].parameters().cpu();
    iterate_with_faults(trainer, {}, {.poison = tensor});
    for (int i = 0; i < 3; ++i) trainer.iterate();
    EXPECT_TRUE(at::equal(before, trainer.policies()[0].parameters().cpu())) << tensor;
    EXPECT_THROW(trainer.check(), std::runtime_error) << tensor;
  }
}

// Waiting for the device cannot be captured.
TEST(Graph, ThatCannotBeCapturedLeavesTheAllocatorUsable) {
  WD_SKIP_WITHOUT_GPU();
  const at::Tensor data = at::ones({1 << 20}, at::TensorOptions().device(at::kCUDA));
  Graph broken(kGpu, true);
  const auto wait = [&] { static_cast<void>((data + data).sum().item<float>()); };
  broken.run(wait);
  EXPECT_THROW(broken.run(wait), std::runtime_error);
  const Experiment setup = make_setup("cartpole", {"trainer.num_envs=64", "trainer.train_batch_size=640"});
  Trainer trainer(setup.config, *setup.environment, kGpu);  // allocates, captures and replays
  for (int i = 0; i < 4; ++i) trainer.iterate();
  EXPECT_NO_THROW(trainer.check());
}

TEST(Graph, IsCapturedAgainAfterAReset) {
  WD_SKIP_WITHOUT_GPU();
  const at::Tensor sum = at::zeros({1}, at::TensorOptions().device(at::kCUDA));
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

TEST(Pace, NeverLetsTheHostRunFurtherAheadThanOneIteration) {
  WD_SKIP_WITHOUT_GPU();
  const at::Tensor data = at::ones({1 << 26}, at::TensorOptions().device(at::kCUDA));
  Pace pace({make_milestone(kGpu), make_milestone(kGpu)});
  c10::Event before(c10::kCUDA);  // the end of the iteration before
  const c10::impl::VirtualGuardImpl gpu(c10::kCUDA);
  for (int i = 0; i < 5; ++i) {
    for (int k = 0; k < 100; ++k) data.mul_(1.0f);
    pace.iteration_enqueued(false);
    EXPECT_TRUE(i == 0 || before.query()) << i;
    before.record(gpu.getStream({c10::kCUDA, 0}));
  }
}

// Each branch multiplies 1 by 3 twenty times, starting from the value written before it; the code after it
// adds the results.
TEST(Branches, BeginAfterWhatIsThereAndEndBeforeWhatFollows) {
  WD_SKIP_WITHOUT_GPU();
  const at::Tensor parts = at::zeros({3, 1 << 20}, at::TensorOptions().device(at::kCUDA).dtype(at::kDouble));
  at::Tensor sum = at::zeros({1 << 20}, parts.options());
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
      EXPECT_TRUE(at::equal(sum.cpu(), at::full({1 << 20}, 3.0 * std::pow(3.0, 20), at::kDouble))) << i;
    }
  }
}

TEST(StrictDevice, SeesWhatTheHostDoesWithTheGpu) {
  WD_SKIP_WITHOUT_GPU();
  const at::Tensor tensor = at::zeros({4}, at::TensorOptions().device(at::kCUDA)), host = at::ones({4});
  const auto caught = [](auto deed) {
    StrictDevice strict(kGpu);
    strict.arm();
    deed();
    strict.disarm();
    try {
      strict.check();
    } catch (const std::runtime_error&) {
      return true;
    }
    return false;
  };
  EXPECT_TRUE(caught([&] { tensor.copy_(host); }));
  EXPECT_TRUE(caught([&] { static_cast<void>(tensor.sum().item<float>()); }));
  EXPECT_TRUE(caught([] { synchronize(kGpu); }));
  EXPECT_FALSE(caught([&] { tensor.add_(1.0f); }));
}

INSTANTIATE_TEST_SUITE_P(
    Trainings, Graphs,
    testing::Values(
        Case{"a2c", "tag_gridworld", "policy={tagger: {algorithm: A2C}, runner: {algorithm: A2C}}"},
        Case{"kept", "tag_continuous",
             "policy={tagger: {algorithm: A2C, reuse_activations: true}, runner: {algorithm: A2C}}"},
        Case{"ppo", "cartpole",
             "policy={shared: {algorithm: PPO, target_kl: 0.01, lr: [[0, 0.01], [4000, 0.001]]}}"},
        Case{"gaussian", "pendulum",
             "policy={shared: {algorithm: PPO, normalize_return: true, gae_lambda: 1}}"},
        Case{"tf32", "tag_gridworld", "policy={tagger: {algorithm: A2C}, runner: {algorithm: PPO}}",
             "trainer.precision=tf32"},
        Case{"bf16", "tag_continuous", "policy={tagger: {algorithm: A2C}, runner: {algorithm: PPO}}",
             "trainer.precision=bf16"},
        Case{"tables", "tag_continuous", "policy={tagger: {algorithm: A2C}, runner: {algorithm: PPO}}",
             "trainer.observations=table"},
        Case{"no_hidden_layer_bf16", "cartpole", "policy={shared: {algorithm: PPO, model: {fc_dims: []}}}",
             "trainer.precision=bf16"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace wd
