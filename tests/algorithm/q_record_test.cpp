// q_record_test.cpp: records whole updates of Q-learning, with all inputs and outputs, in $WD_RECORD_DIR for
// q_oracle_test.py.
#include "tests/algorithm/record.h"

namespace wd {
namespace {

struct QCase {
  std::string name;
  std::vector<int> heads;
  bool masks;
  Activation activation;
  const char* network = nullptr;  // of one with memory
  int sequence_length = 0;
};

class QRecords : public testing::TestWithParam<QCase> {};

TEST_P(QRecords, AnUpdate) {
  const QCase& c = GetParam();
  const Spec spec = spec_of(ActionSpace::discrete(c.heads), c.masks);
  PolicySettings settings;
  settings.name = "agent";
  settings.algorithm = AlgorithmChoice::named("PQN");
  auto& pqn = settings.algorithm.as<PqnSettings>();
  set_common(pqn, settings.model);
  pqn.lr.points = {{0.0, 0.0}, {2000.0, 0.02}};      // 0.01 at step 1000
  pqn.epsilon.points = {{0.0, 1.0}, {2000.0, 0.2}};  // 0.6 at step 1000
  settings.model.activation = c.activation;
  if (c.network != nullptr) {
    settings.model.set_type(c.network);
    settings.model.sequence_length = c.sequence_length;
  }
  Cast cast = Cast::of_roles(spec, {"agent"}, {0});
  cast.policies[0].state_size = settings.model.state_size();
  Trajectory trajectory({spec, cast, kSteps, kEnvs});
  Draws draws(8);
  fill_trajectory(draws, trajectory, false);
  Policy policy(trajectory.policies()[0], settings.model, 0, kSeed, kChunkRows, {}, kFp32,
                PolicyOutput::kValues);
  Learner learner({&policy, 1}, trajectory, 0, settings, kSeed);
  Record record;
  record_update(record, spec, policy, learner, trajectory, pqn);
  if (c.network != nullptr) {
    record.add("state", trajectory.policies()[0].state);
    record.add("restarted", trajectory.policies()[0].restarted);
  }
  record.write(record_folder() / (c.name + ".safetensors"),
               pqn_metadata(pqn, spec.roles[0].action,
                            {{"activation", c.activation == kRelu ? "relu" : "tanh"},
                             {"epsilon", text(value_at(pqn.epsilon, kEnvSteps))},
                             {"sequence_length", text(c.network != nullptr ? c.sequence_length : -1)}}));
}

INSTANTIATE_TEST_SUITE_P(Updates, QRecords,
                         testing::Values(QCase{"one_head", {5}, false, kRelu},
                                         QCase{"heads_and_masks", {3, 4}, true, kTanh},
                                         QCase{"mingru", {5}, false, kTanh, "mingru"},
                                         QCase{"gru", {3, 4}, true, kTanh, "gru", 4},
                                         QCase{"lstm", {5}, true, kTanh, "lstm", 3}),
                         [](const auto& info) { return info.param.name; });

TEST(Values, OfContinuousActionsAreRefused) {
  Spec spec;
  spec.roles = {{.name = "agent", .observation = {{"o", 2}}, .action = ActionSpace::box(1, -1.0f, 1.0f)}};
  const Trajectory trajectory({spec, Cast::of_roles(spec, {"agent"}, {0}), 2, 2});
  EXPECT_THROW(Policy(trajectory.policies()[0], {}, 0, 1, 64, {}, kFp32, PolicyOutput::kValues), UsageError);
}

}  // namespace
}  // namespace wd
