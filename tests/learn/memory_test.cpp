// memory_test.cpp: an episode shows a cue at its beginning and asks for it at its end (recall.cu). A
// recurrent policy learns to answer; one without a state can only guess.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/support.h"
#include "wd/detail/parallel.h"
#include "wd/trainer.h"

namespace wd {
namespace {

// Trains until answers are right, for at most 92,160 steps: how soon that is hangs on torch's own code of a
// GRU, which differs from processor to processor.
double return_after_training(const std::string& model, const std::vector<std::string>& more = {}) {
  std::vector<std::string> settings = {
      "env.wait=4", "trainer.num_envs=32", "trainer.train_batch_size=768", "trainer.total_steps=92160",
      "policy={shared: {algorithm: PPO, gamma: 0.99, gae_lambda: 0.95, lr: 3e-3, entropy_coeff: 0.01, "
      "num_epochs: 4, num_minibatches: 4, model: " +
          model + "}}"};
  settings.insert(settings.end(), more.begin(), more.end());
  const Experiment setup = make_setup("recall", settings);
  Trainer trainer(setup.config, *setup.environment, {});
  while (trainer.counts().env_steps < setup.config.trainer.total_steps && !(trainer.mean_return(0) > 0.95))
    trainer.iterate();
  return trainer.mean_return(0);
}

TEST(Memory, ARecurrentPolicyRemembersTheCue) {
  for (const std::string type : {"mingru", "gru", "lstm"})
    EXPECT_GT(return_after_training("{type: " + type + ", width: 16}"), 0.95) << type;
}

TEST(Memory, SequencesNeedNotBeWholeRollouts) {
  EXPECT_GT(return_after_training("{type: gru, width: 16, sequence_length: 12, separate_value: true}"), 0.95);
}

TEST(Memory, WithoutAStateThereIsNothingToKnow) {
  EXPECT_LT(std::abs(return_after_training("{fc_dims: [16], activation: tanh}")), 0.4);
}

// Starts from the stored states, over several steps of several episodes, in blocks.
TEST(Memory, BitsDoNotDependOnThreads) {
  std::vector<at::Tensor> parameters;
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    const Experiment setup =
        make_setup("recall", {"trainer.num_envs=96", "trainer.train_batch_size=2304",
                              "policy={shared: {algorithm: PPO, num_epochs: 2, num_minibatches: 2, model: "
                              "{type: gru, width: 8}}}"});
    Trainer trainer(setup.config, *setup.environment, {});
    for (int k = 0; k < 3; ++k) trainer.iterate();
    parameters.push_back(trainer.policies()[0].parameters().clone());
  }
  EXPECT_TRUE(at::equal(parameters[0], parameters[1]));
}

// The values of visitors.cu, whose agents leave and return, are those of torch's own cell, which starts with
// 0 at an agent's first step of an episode and at its first step after each absence; in the update too, which
// sees the policy that acted.
TEST(Memory, OfAnAgentThatReturnsIsEmpty) {
  const Experiment setup = make_setup(
      "visitors",
      {"trainer.num_envs=4", "trainer.train_batch_size=96",
       "policy={shared: {algorithm: PPO, num_epochs: 1, num_minibatches: 1, lr: 0.0, normalize_value: false, "
       "model: {type: gru, width: 8, sequence_length: 8}}}"});
  Trainer trainer(setup.config, *setup.environment, {});
  trainer.iterate();
  const at::Tensor last = trainer.trajectory().policies()[0].state[24].clone();
  trainer.iterate();
  EXPECT_TRUE(at::equal(trainer.trajectory().policies()[0].state[0], last));
  EXPECT_GT(last.abs().max().item<float>(), 0.0f);
  std::map<std::string, at::Tensor> weights;
  for (const NamedTensor& named : trainer.policies()[0].named_parameters())
    weights[named.name.substr(7)] = named.tensor.to(at::kDouble);  // without "layers."
  const Trajectory& trajectory = trainer.trajectory();
  const PolicyBuffers& buffers = trajectory.policies()[0];
  at::Tensor state = buffers.state[0].to(at::kDouble).flatten(0, 1);
  int returned = 0;
  for (int t = 0; t <= 24; ++t) {
    const at::Tensor now = buffers.active[t].flatten(),
                     before = t > 0 ? buffers.active[t - 1].flatten() : now.clone();
    const at::Tensor resets = (t > 0 ? trajectory.reset_step()[t - 1] : at::zeros({4}, at::kByte));
    const at::Tensor back = now.gt(before), first = resets.unsqueeze(1).expand({4, 3}).flatten().gt(0);
    returned += back.logical_and(first.logical_not()).sum().item<int>();
    if (t > 0) state = state.masked_fill(back.logical_or(first).unsqueeze(1), 0.0);
    const at::Tensor sight = buffers.observation[t].flatten(0, 1).narrow(1, 0, 1).to(at::kDouble);
    const at::Tensor seen = at::tanh(at::linear(sight, weights.at("input.weight"), weights.at("input.bias")));
    state = at::gru_cell(seen, t == 0 ? state * buffers.restarted[0].flatten().eq(0).unsqueeze(1) : state,
                         weights.at("cell.weight_ih"), weights.at("cell.weight_hh"),
                         weights.at("cell.bias_ih"), weights.at("cell.bias_hh"));
    const at::Tensor output = at::linear(state, weights.at("head.weight"), weights.at("head.bias"));
    EXPECT_TRUE(at::allclose(output.select(1, 2), buffers.value[t].flatten().to(at::kDouble), 1e-4, 1e-5))
        << t;
  }
  EXPECT_GT(returned, 20);
  const MetricsRow row = trainer.take_metrics();
  for (const auto& [name, value] : row.values()) {
    if (name != "shared/approx_kl") continue;
    EXPECT_LT(value, 1e-9);
  }
}

// A resumed run continues with the stored states of its agents.
TEST(Memory, IsInASnapshot) {
  const Experiment setup =
      make_setup("recall", {"trainer.num_envs=8", "trainer.train_batch_size=56",  // 7 steps; an episode has 6
                            "policy={shared: {algorithm: A2C, model: {type: gru, width: 8}}}"});
  Trainer one(setup.config, *setup.environment, {});
  for (int k = 0; k < 2; ++k) one.iterate();
  Trainer other(setup.config, *setup.environment, {});
  other.restore(one.snapshot());
  EXPECT_GT(one.trajectory().policies()[0].state[7].abs().max().item<float>(), 0.0f);
  one.iterate();
  other.iterate();
  EXPECT_TRUE(at::equal(one.policies()[0].parameters(), other.policies()[0].parameters()));
}

}  // namespace
}  // namespace wd
