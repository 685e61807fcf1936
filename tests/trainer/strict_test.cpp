// strict_test.cpp: a training loop after warm-up does not allocate; one that does is detected and named.
#include "src/device/strict.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <thread>

#include "src/trainer/train.h"
#include "tests/stepped_gru.h"
#include "tests/support.h"
#include "wd/trainer.h"

namespace wd {
namespace {

// The error message of check(); empty if there is no error.
std::string complaint(const StrictDevice& strict) {
  try {
    strict.check();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(StrictDevice, NamesTheFirstAllocationWhileItIsArmed) {
  StrictDevice strict({});
  const at::Tensor before = at::zeros({5});
  strict.arm();
  {
    const NotStrict excused;
    const at::Tensor due = at::zeros({6});
  }
  const at::Tensor view = before.narrow(0, 1, 3);
  EXPECT_EQ(complaint(strict), "");
  const at::Tensor first = at::zeros({7}), second = at::zeros({8});
  strict.disarm();
  const at::Tensor after = at::zeros({9});
  EXPECT_THAT(complaint(strict),
              testing::HasSubstr("2 violations, the first being an allocation of 28 bytes"));
}

TEST(StrictDevice, SeesAllocationsOfOtherThreads) {
  StrictDevice strict({});
  strict.arm();
  std::thread([] { at::zeros({7}); }).join();
  EXPECT_THAT(complaint(strict), testing::HasSubstr("1 violation"));
}

TEST(StrictDevice, HasOnePlace) {
  const StrictDevice strict({});
  EXPECT_THROW(StrictDevice({}), UsageError);
}

TEST(StrictDevice, LeavesTheAllocatorAsItWas) {
  const auto* const before = c10::GetAllocator(c10::kCPU);
  {
    const StrictDevice strict({});
  }
  EXPECT_EQ(c10::GetAllocator(c10::kCPU), before);
}

struct Case {
  const char *name, *env, *policy;
  const char* setting = "trainer.precision=fp32";
};

constexpr const char* kBf16 = "trainer.precision=bf16";

class WarmLoop : public testing::TestWithParam<Case> {};

TEST_P(WarmLoop, AllocatesNothing) {
  const Experiment setup = make_setup(GetParam().env, {"trainer.num_envs=6", "trainer.train_batch_size=60",
                                                       GetParam().setting, GetParam().policy});
  Trainer trainer(setup.config, *setup.environment, {});
  for (const bool may_stop : {false, true}) {
    if (may_stop && !trainer.can_be_undone()) break;
    std::function<bool()> should_stop;
    if (may_stop) should_stop = [] { return false; };
    for (int i = 0; i < 2; ++i) trainer.iterate(should_stop);
    StrictDevice strict({});
    strict.arm();
    for (int i = 0; i < 4; ++i) trainer.iterate(should_stop);
    strict.disarm();
    EXPECT_EQ(complaint(strict), "") << may_stop;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Loops, WarmLoop,
    testing::Values(
        Case{"a2c", "tag_gridworld", "policy={tagger: {algorithm: A2C}, runner: {algorithm: A2C}}"},
        Case{"ppo", "tag_gridworld",
             "policy={shared: {algorithm: PPO, num_minibatches: 4, target_kl: 0.01, normalize_return: true, "
             "gae_lambda: 1, "
             "normalize_advantage: true, vf_clip_param: 0.1, lr: [[0, 0.01], [900, 0.0]]}}"},
        Case{"reinforce", "cartpole", "policy={shared: {algorithm: REINFORCE, normalize_return: true}}",
             "env.episode_length=5"},
        Case{"reuse", "tag_gridworld",
             "policy={tagger: {algorithm: A2C, reuse_activations: true}, runner: {algorithm: A2C}}"},
        Case{"pool", "tag_gridworld",
             "policy={tagger: {algorithm: A2C}, runner: {algorithm: A2C, model: {fc_dims: [8]}}}",
             "opponents.runner=[{pool: {size: 2, every: 60, draw: pfsp}, share: 0.6}, self, random]"},
        Case{"pqn", "tag_gridworld",
             "policy={tagger: {algorithm: PQN, epsilon: [[0, 1], [900, 0]]}, runner: {algorithm: PQN}}"},
        Case{"dqn", "tag_gridworld",
             "policy={shared: {algorithm: DQN, batch_size: 12, replay_ratio: 0.4, buffer_size: 300, "
             "learning_starts: 0, target_every: 120, prioritized: true, n_step: 2}}"},
        Case{"qmix", "simple_spread",
             "policy={shared: {algorithm: QMIX, batch_size: 12, replay_ratio: 0.4, buffer_size: 300, "
             "learning_starts: 0, target_every: 120, model: {critic_reads: [state]}}}"},
        Case{"pqn_qmix", "simple_spread",
             "policy={shared: {algorithm: PQN-QMIX, model: {critic_reads: [state]}}}"},
        Case{"td3", "pendulum",
             "policy={shared: {algorithm: TD3, batch_size: 12, replay_ratio: 0.6, buffer_size: 300, "
             "learning_starts: 0, noise_damping: 0.2, prioritized: true, n_step: 2}}"},
        Case{"sac", "pendulum",
             "policy={shared: {algorithm: SAC, batch_size: 12, replay_ratio: 0.4, buffer_size: 300, "
             "learning_starts: 0, model: {quantiles: 3}}}"},
        Case{"sac_choices", "tag_gridworld",
             "policy={shared: {algorithm: SAC, batch_size: 12, replay_ratio: 0.4, buffer_size: 300, "
             "learning_starts: 0}}"},
        Case{"gaussian", "pendulum", "policy={shared: {algorithm: PPO, model: {separate_value: true}}}"},
        Case{"continuous_tag", "tag_continuous",
             "policy={tagger: {algorithm: PPO}, runner: {algorithm: A2C}}"},
        Case{"tables", "tag_continuous", "policy={tagger: {algorithm: PPO}, runner: {algorithm: A2C}}",
             "trainer.observations=table"},
        Case{"layer_norm", "tag_continuous",
             "policy={tagger: {algorithm: PPO, model: {layer_norm: true}}, "
             "runner: {algorithm: A2C, reuse_activations: true, model: {layer_norm: true}}}",
             kBf16},
        Case{"gaussian_bf16", "pendulum", "policy={shared: {algorithm: PPO, model: {separate_value: true}}}",
             kBf16},
        Case{"no_hidden_layer_bf16", "cartpole", "policy={shared: {algorithm: A2C, model: {fc_dims: []}}}",
             kBf16},
        Case{"normalized", "tag_continuous",
             "policy={tagger: {algorithm: A2C, reuse_activations: true, normalize_value: true, "
             "normalize_reward: true}, runner: {algorithm: PPO, normalize_value: true, normalize_reward: "
             "true}}",
             kBf16},
        Case{"gru", "cartpole",
             "policy={shared: {algorithm: PPO, num_minibatches: 4, model: {type: gru, width: 8}}}"},
        Case{"continuous_tag_bf16", "tag_continuous",
             "policy={tagger: {algorithm: PPO}, runner: {algorithm: A2C}}", kBf16}),
    [](const auto& info) { return std::string(info.param.name); });

class StrictTraining : public testing::TestWithParam<const char*> {};

// What a module's autograd allocates does not hide what others allocate.
TEST_P(StrictTraining, FailsWhereTheLoopAllocates) {
  const Experiment setup = make_setup("cartpole", {"trainer.num_envs=4", "trainer.train_batch_size=40",
                                                   "trainer.total_steps=400", GetParam()});
  int asked = 0;
  TrainOptions options{setup.config, [&] {
                         if (++asked == 6) at::zeros({11});
                         return 0;
                       }};
  Trainer lenient(setup.config, *setup.environment, {});
  EXPECT_EQ(train(options, lenient, nullptr, nullptr).reason, "total_steps");
  asked = 0;
  options.strict_device = true;
  Trainer strict(setup.config, *setup.environment, {});
  EXPECT_THAT([&] { train(options, strict, nullptr, nullptr); },
              testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr("an allocation of 44 bytes")));
  EXPECT_EQ(strict.counts().iteration, 5);
}

INSTANTIATE_TEST_SUITE_P(Networks, StrictTraining,
                         testing::Values("policy={shared: {model: {type: fully_connected}}}",
                                         "policy={shared: {model: {type: gru, width: 8}}}",
                                         "policy={shared: {model: {type: stepped_gru, width: 8}}}"));

}  // namespace
}  // namespace wd
