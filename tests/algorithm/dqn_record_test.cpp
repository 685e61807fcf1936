// dqn_record_test.cpp: records iterations of DQN, with all that was played and all that was learned, in
// $WD_RECORD_DIR for dqn_oracle_test.py.
#include <functional>

#include "tests/algorithm/record.h"
#include "tests/schedule.h"
#include "wd/algorithms.h"

namespace wd {
namespace {

struct DqnCase {
  std::string name;
  std::vector<int> heads;
  bool masks;
  std::function<void(DqnSettings&, ModelSettings&)> set;
};

// Two rollouts and a few steps more, so that the fourth one overwrites the oldest.
DqnSettings settings_of(const DqnCase& c, ModelSettings& model) {
  DqnSettings dqn;
  dqn.gamma = 0.9;
  dqn.reward_scale = 0.5;
  dqn.lr = 0.01;
  dqn.epsilon = 0.5;
  dqn.max_grad_norm = 0.2;
  dqn.adam_epsilon = 1e-4;  // large, so that Adam's step depends on the gradient's scale
  dqn.target_every = 2 * kSteps * kEnvs;
  dqn.replay.n_step = 1;
  dqn.replay.buffer_size = (2 * kSteps + 3) * kEnvs;
  dqn.replay.batch_size = 2 * kEnvs;
  dqn.replay.replay_ratio = 0.5;
  dqn.replay.learning_starts = kSteps * kEnvs + 1;
  model.fc_dims = {16, 8};
  model.activation = kTanh;
  c.set(dqn, model);
  return dqn;
}

class DqnRecords : public testing::TestWithParam<DqnCase> {};

TEST_P(DqnRecords, Iterations) {
  const DqnCase& c = GetParam();
  Spec spec;
  spec.roles = {{.name = "agent",
                 .count = kAgents,
                 .observation = {{"o", kObservation}},
                 .action = ActionSpace::discrete(c.heads),
                 .action_mask = c.masks}};
  spec.time_limit = kTimeLimit;
  // Two numbers that describe each choice, for model.input: choices.
  Draws descriptions(5);
  const std::int64_t choices = spec.roles[0].action.choices();
  spec.roles[0].choice_features = {.size = 2, .fixed = descriptions.uniforms(2 * choices, -1.0f, 1.0f)};
  PolicySettings settings;
  settings.name = "agent";
  settings.algorithm = settings_of(c, settings.model);
  const auto& dqn = settings.algorithm.as<DqnSettings>();

  Trajectory trajectory({spec, {"agent"}, {0}, kSteps, kEnvs});
  PolicyBuffers& buffers = trajectory.policies()[0];
  Draws draws(8);
  Policy policy(buffers, settings.model, 0, kSeed, kChunkRows, {}, kFp32, PolicyOutput::kValues);
  Learner learner({&policy, 1}, trajectory, 0, settings, kSeed);
  EXPECT_FALSE(learner.algorithm().wants_values());
  EXPECT_FALSE(learner.algorithm().can_be_undone());
  TrainingClock clock({});
  Record record;
  record.add("before.", policy, policy.parameters());
  record.add("choices", at::tensor(spec.roles[0].choice_features.fixed).view({choices, 2}));
  for (int i = 0; i < kIterations; ++i) {
    clock.set(i, i * kSteps * kEnvs);
    fill_trajectory(draws, trajectory, false);
    learner.enter(i);
    learner.begin_rollout(clock);
    const std::string prefix = concat(i, '.');
    play(record, prefix, i, policy, learner, trajectory);
    ASSERT_TRUE(update({&learner, 1}, clock));
    record.add(prefix + "after.", policy, policy.parameters());
    record_learned(record, prefix, i, learner);
  }
  std::string heads;
  for (const int n : c.heads) heads += std::to_string(n) + " ";
  const auto text = [](auto value) { return concat(value); };
  record.write(record_folder() / (c.name + ".safetensors"),
               {{"heads", heads},
                {"gamma", text(dqn.gamma)},
                {"reward_scale", text(dqn.reward_scale)},
                {"lr", text(value_at(dqn.lr, 0))},
                {"max_grad_norm", text(value_at(dqn.max_grad_norm, 0))},
                {"adam_epsilon", text(dqn.adam_epsilon)},
                {"target_every", text(dqn.target_every)},
                {"tau", text(dqn.tau)},
                {"double_q", text(dqn.double_q ? 1 : 0)},
                {"huber", text(dqn.huber)},
                {"cql_alpha", text(dqn.cql_alpha)},
                {"n_step", text(dqn.replay.n_step)},
                {"buffer_size", text(dqn.replay.buffer_size)},
                {"batch_size", text(dqn.replay.batch_size)},
                {"replay_ratio", text(dqn.replay.replay_ratio)},
                {"learning_starts", text(dqn.replay.learning_starts)},
                {"prioritized", text(dqn.replay.prioritized ? 1 : 0)},
                {"priority_exponent", text(dqn.replay.priority_exponent)},
                {"importance_exponent", text(value_at(dqn.replay.importance_exponent, 0))},
                {"dueling", text(settings.model.dueling ? 1 : 0)},
                {"quantiles", text(settings.model.quantiles)},
                {"dueling", text(settings.model.dueling ? 1 : 0)},
                {"quantiles", text(settings.model.quantiles)},
                {"parametric", text(settings.model.input == kChoiceInput ? 1 : 0)},
                {"seed", text(kSeed)}});
}

INSTANTIATE_TEST_SUITE_P(
    Updates, DqnRecords,
    testing::Values(
        DqnCase{"plain",
                {5},
                false,
                [](DqnSettings& dqn, ModelSettings&) {
                  dqn.double_q = false;
                  dqn.huber = 0.0;
                }},
        DqnCase{"double_n_step",
                {3, 4},
                true,
                [](DqnSettings& dqn, ModelSettings&) {
                  dqn.replay.n_step = 3;
                  dqn.huber = 0.2;
                  dqn.target_every = 20;
                  dqn.tau = 0.3;
                }},
        DqnCase{"dueling", {3, 4}, true, [](DqnSettings&, ModelSettings& model) { model.dueling = true; }},
        DqnCase{"parametric",
                {3, 4},
                true,
                [](DqnSettings& dqn, ModelSettings& model) {
                  dqn.replay.prioritized = true;
                  model.input = kChoiceInput;
                }},
        DqnCase{"quantiles",
                {3, 2},
                false,
                [](DqnSettings& dqn, ModelSettings& model) {
                  dqn.huber = 0.3;
                  dqn.replay.prioritized = true;
                  model.quantiles = 5;
                  model.dueling = true;
                }},
        DqnCase{"conservative",
                {3, 4},
                true,
                [](DqnSettings& dqn, ModelSettings&) {
                  dqn.cql_alpha = 0.7;
                  dqn.replay.prioritized = true;
                }},
        DqnCase{"conservative_quantiles",
                {3, 2},
                false,
                [](DqnSettings& dqn, ModelSettings& model) {
                  dqn.cql_alpha = 0.3;
                  model.quantiles = 3;
                }},
        DqnCase{"pinball",
                {4},
                true,
                [](DqnSettings& dqn, ModelSettings& model) {
                  dqn.huber = 0.0;
                  dqn.double_q = false;
                  model.quantiles = 3;
                }},
        DqnCase{"prioritized",
                {4},
                false,
                [](DqnSettings& dqn, ModelSettings&) {
                  dqn.replay.n_step = 2;
                  dqn.replay.prioritized = true;
                  dqn.replay.importance_exponent = 0.7;
                }},
        DqnCase{"blocks",
                {4},
                false,
                [](DqnSettings& dqn, ModelSettings&) {
                  learn_in_blocks(dqn.replay);
                  dqn.replay.n_step = 2;
                }},
        DqnCase{"spaced",
                {4},
                true,
                [](DqnSettings& dqn, ModelSettings&) {
                  dqn.replay.prioritized = true;
                  dqn.replay.batch_size = 1;
                  dqn.replay.replay_ratio = 0.25;
                }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wd
