// team_record_test.cpp: records updates of the algorithms that learn one value of a team, with all inputs and
// outputs, in $WD_RECORD_DIR for team_oracle_test.py.
#include "tests/algorithm/record.h"

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
    spec_ = spec_of(ActionSpace::discrete(c.heads), c.masks);
    spec_.streams = {{"state", StreamSpec::kReplica, {kState}}};
    settings_.name = "agent";
    settings_.algorithm = AlgorithmChoice::named(c.algorithm);
    settings_.model.dueling = c.dueling;
    if (settings_.algorithm->traits().mixer.reads_state()) settings_.model.critic_reads = {"state"};
  }

  Trajectory trajectory() const {
    return Trajectory(
        {.spec = spec_,
         .cast = {{{.name = "agent", .reads = settings_.model.all_reads()}}, {{0, 0, kAgents, 0}}},
         .steps = kSteps,
         .num_envs = kEnvs});
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
  Spec spec_;
  PolicySettings settings_;
};

class RolloutTeams : public TeamRecords {};

TEST_P(RolloutTeams, AnUpdate) {
  auto& pqn = settings_.algorithm.as<PqnSettings>();
  set_common(pqn, settings_.model);
  pqn.mixer.units = 4;
  pqn.mixer.hidden = {7};
  Trajectory trajectory = this->trajectory();
  Draws draws(8);
  fill_trajectory(draws, trajectory, false);
  fill_states(draws, trajectory);
  Policy policy = this->policy(trajectory);
  Learner learner({&policy, 1}, trajectory, 0, settings_, kSeed);
  Record record;
  record_states(record, "", trajectory);
  record_update(record, spec_, policy, learner, trajectory, pqn);
  record.write(
      record_folder() / (GetParam().name + ".safetensors"),
      pqn_metadata(pqn, spec_.roles[0].action, {{"dueling", text(0)}, {"units", text(pqn.mixer.units)}}));
}

INSTANTIATE_TEST_SUITE_P(Updates, RolloutTeams,
                         testing::Values(TeamCase{"pqn_vdn", "PQN-VDN", {5}, true},
                                         TeamCase{"pqn_qmix", "PQN-QMIX", {3, 4}, true}),
                         [](const auto& info) { return info.param.name; });

class ReplayTeams : public TeamRecords {};

TEST_P(ReplayTeams, Iterations) {
  const TeamCase& c = GetParam();
  auto& dqn = settings_.algorithm.as<DqnSettings>();
  set_common(dqn, settings_.model);
  dqn.epsilon = 0.5;
  dqn.huber = 0.8;
  dqn.tau = 0.3;
  dqn.double_q = c.double_q;
  dqn.target_every = 2 * kSteps * kEnvs;
  dqn.replay.n_step = c.n_step;
  dqn.replay.prioritized = c.prioritized;
  if (c.blocks) learn_in_blocks(dqn.replay);
  dqn.mixer.units = 4;
  dqn.mixer.hidden = {7};
  Trajectory trajectory = this->trajectory();
  Policy policy = this->policy(trajectory);
  Learner learner({&policy, 1}, trajectory, 0, settings_, kSeed);
  Record record;
  record_iterations(
      record, policy, learner, trajectory,
      {.fill = [&](Draws& draws) { fill_states(draws, trajectory); },
       .played = [&](const std::string& prefix) { record_states(record, prefix, trajectory); }});
  record.write(record_folder() / (c.name + ".safetensors"),
               replay_metadata(dqn, spec_.roles[0].action,
                               {{"target_every", text(dqn.target_every)},
                                {"tau", text(dqn.tau)},
                                {"double_q", text(dqn.double_q ? 1 : 0)},
                                {"huber", text(dqn.huber)},
                                {"dueling", text(c.dueling ? 1 : 0)},
                                {"units", text(dqn.mixer.units)}}));
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
