// team_record_test.cpp: records updates of the algorithms that learn one value of a team, with all inputs and
// outputs, in $WD_RECORD_DIR for team_oracle_test.py.
#include "tests/algorithm/record.h"
#include "tests/schedule.h"
#include "wd/algorithms.h"

namespace wd {
namespace {

constexpr int kState = 5;

struct TeamCase {
  std::string name, algorithm;
  std::vector<int> heads;
  bool masks;
  int n_step = 1;
  bool prioritized = false, double_q = true, dueling = false, blocks = false;
};

class TeamRecords : public testing::TestWithParam<TeamCase> {
 protected:
  TeamRecords() {
    const TeamCase& c = GetParam();
    spec_.roles = {{.name = "agent",
                    .count = kAgents,
                    .observation = {{"o", kObservation}},
                    .action = ActionSpace::discrete(c.heads),
                    .action_mask = c.masks}};
    spec_.time_limit = kTimeLimit;
    spec_.streams = {{"state", StreamSpec::kReplica, {kState}}};
    settings_.name = "agent";
    settings_.algorithm = AlgorithmChoice::named(c.algorithm);
    settings_.model.fc_dims = {16, 8};
    settings_.model.activation = kTanh;
    settings_.model.dueling = c.dueling;
    if (settings_.algorithm->traits().mixer.reads_state()) settings_.model.critic_reads = {"state"};
  }

  Trajectory trajectory() const {
    return Trajectory({.spec = spec_,
                       .policies = {"agent"},
                       .policy_of_role = {0},
                       .steps = kSteps,
                       .num_envs = kEnvs,
                       .reads = {settings_.model.all_reads()}});
  }
  Policy policy(const Trajectory& trajectory) const {
    return {trajectory.policies()[0], settings_, 0, kSeed, kChunkRows, {}, kFp32};
  }
  static void fill_states(Draws& draws, Trajectory& trajectory) {
    const at::Tensor& state = trajectory.policies()[0].stream_rows[0];
    if (!state.defined()) return;
    state.copy_(at::tensor(draws.uniforms(state.numel(), -2.0f, 2.0f)).view(state.sizes()));
  }
  static void record_states(Record& record, const std::string& prefix, const Trajectory& trajectory) {
    const at::Tensor& state = trajectory.policies()[0].stream_rows[0];
    if (state.defined()) record.add(prefix + "state", state.select(2, 0).narrow(2, 0, kState));
  }
  std::string heads() const {
    std::string all;
    for (const int n : GetParam().heads) all += std::to_string(n) + " ";
    return all;
  }

  Spec spec_;
  PolicySettings settings_;
};

std::string text(auto value) { return concat(value); }

class RolloutTeams : public TeamRecords {};

TEST_P(RolloutTeams, AnUpdate) {
  auto& pqn = settings_.algorithm.as<PqnSettings>();
  pqn.gamma = 0.97;
  pqn.lambda = 0.8;
  pqn.reward_scale = 0.3;
  pqn.lr = 0.01;
  pqn.epsilon = 0.6;
  pqn.max_grad_norm = 0.2;
  pqn.num_epochs = 2;
  pqn.num_minibatches = 3;
  pqn.adam_epsilon = 1e-4;  // large, so that Adam's step depends on the gradient's scale
  pqn.mixer.units = 4;
  pqn.mixer.hidden = {7};
  Trajectory trajectory = this->trajectory();
  Draws draws(8);
  fill_trajectory(draws, trajectory, false);
  fill_states(draws, trajectory);
  Policy policy = this->policy(trajectory);
  Learner learner({&policy, 1}, trajectory, 0, settings_, kSeed);
  const TrainingClock clock = clock_then();
  learner.begin_rollout(clock);
  for (int t = 0; t < kSteps; ++t)
    policy.act(trajectory.policies()[0], t,
               {.seed = kSeed, .step = static_cast<std::uint64_t>(t), .exploration = learner.exploration()});
  policy.evaluate(trajectory.policies()[0], kSteps);

  Record record;
  record.add("before.", policy, policy.parameters());
  prepare({&learner, 1});
  record_rollout(record, trajectory);
  record_states(record, "", trajectory);
  record_order(record, spec_, pqn, {});
  ASSERT_TRUE(update({&learner, 1}, clock));
  record.add("after.", policy, policy.parameters());
  for (const auto& [name, value] : learner.algorithm().metrics())
    record.add("metric." + name, at::full({}, value, at::kDouble));
  record.write(record_folder() / (GetParam().name + ".safetensors"),
               {{"heads", heads()},
                {"gamma", text(pqn.gamma)},
                {"decay", text(pqn.lambda)},
                {"reward_scale", text(pqn.reward_scale)},
                {"lr", text(value_at(pqn.lr, 0))},
                {"max_grad_norm", text(value_at(pqn.max_grad_norm, 0))},
                {"adam_epsilon", text(pqn.adam_epsilon)},
                {"dueling", text(0)},
                {"units", text(pqn.mixer.units)}});
}

INSTANTIATE_TEST_SUITE_P(Updates, RolloutTeams,
                         testing::Values(TeamCase{"pqn_vdn", "PQN-VDN", {5}, true},
                                         TeamCase{"pqn_qmix", "PQN-QMIX", {3, 4}, true}),
                         [](const auto& info) { return info.param.name; });

class ReplayTeams : public TeamRecords {};

TEST_P(ReplayTeams, Iterations) {
  const TeamCase& c = GetParam();
  auto& dqn = settings_.algorithm.as<DqnSettings>();
  dqn.gamma = 0.9;
  dqn.reward_scale = 0.5;
  dqn.lr = 0.01;
  dqn.epsilon = 0.5;
  dqn.max_grad_norm = 0.2;
  dqn.adam_epsilon = 1e-4;
  dqn.huber = 0.8;
  dqn.tau = 0.3;
  dqn.double_q = c.double_q;
  dqn.target_every = 2 * kSteps * kEnvs;
  dqn.replay.n_step = c.n_step;
  dqn.replay.prioritized = c.prioritized;
  dqn.replay.buffer_size = (2 * kSteps + 3) * kEnvs;
  dqn.replay.batch_size = 2 * kEnvs;
  dqn.replay.replay_ratio = 0.5;
  dqn.replay.learning_starts = kSteps * kEnvs + 1;
  if (c.blocks) learn_in_blocks(dqn.replay);
  dqn.mixer.units = 4;
  dqn.mixer.hidden = {7};
  Trajectory trajectory = this->trajectory();
  Draws draws(8);
  Policy policy = this->policy(trajectory);
  Learner learner({&policy, 1}, trajectory, 0, settings_, kSeed);
  TrainingClock clock({});
  Record record;
  record.add("before.", policy, policy.parameters());
  for (int i = 0; i < kIterations; ++i) {
    clock.set(i, i * kSteps * kEnvs);
    fill_trajectory(draws, trajectory, false);
    fill_states(draws, trajectory);
    learner.enter(i);
    learner.begin_rollout(clock);
    const std::string prefix = concat(i, '.');
    play(record, prefix, i, policy, learner, trajectory);
    record_states(record, prefix, trajectory);
    ASSERT_TRUE(update({&learner, 1}, clock));
    record.add(prefix + "after.", policy, policy.parameters());
    record_learned(record, prefix, i, learner);
  }
  record.write(record_folder() / (c.name + ".safetensors"),
               {{"heads", heads()},
                {"gamma", text(dqn.gamma)},
                {"reward_scale", text(dqn.reward_scale)},
                {"lr", text(value_at(dqn.lr, 0))},
                {"max_grad_norm", text(value_at(dqn.max_grad_norm, 0))},
                {"adam_epsilon", text(dqn.adam_epsilon)},
                {"target_every", text(dqn.target_every)},
                {"tau", text(dqn.tau)},
                {"double_q", text(dqn.double_q ? 1 : 0)},
                {"huber", text(dqn.huber)},
                {"n_step", text(dqn.replay.n_step)},
                {"buffer_size", text(dqn.replay.buffer_size)},
                {"batch_size", text(dqn.replay.batch_size)},
                {"replay_ratio", text(dqn.replay.replay_ratio)},
                {"learning_starts", text(dqn.replay.learning_starts)},
                {"prioritized", text(dqn.replay.prioritized ? 1 : 0)},
                {"priority_exponent", text(dqn.replay.priority_exponent)},
                {"importance_exponent", text(value_at(dqn.replay.importance_exponent, 0))},
                {"dueling", text(c.dueling ? 1 : 0)},
                {"units", text(dqn.mixer.units)},
                {"seed", text(kSeed)}});
}

INSTANTIATE_TEST_SUITE_P(
    Updates, ReplayTeams,
    testing::Values(
        TeamCase{"qmix", "QMIX", {5}, true},
        TeamCase{.name = "qmix_n_step",
                 .algorithm = "QMIX",
                 .heads = {3, 4},
                 .masks = true,
                 .n_step = 3,
                 .prioritized = true},
        TeamCase{.name = "vdn", .algorithm = "VDN", .heads = {3, 2}, .masks = false, .double_q = false},
        TeamCase{.name = "vdn_dueling",
                 .algorithm = "VDN",
                 .heads = {4},
                 .masks = true,
                 .n_step = 2,
                 .dueling = true},
        TeamCase{.name = "qmix_blocks", .algorithm = "QMIX", .heads = {5}, .masks = true, .blocks = true}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wd
