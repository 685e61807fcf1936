// q_record_test.cpp: records whole updates of Q-learning, with all inputs and outputs, in $WD_RECORD_DIR for
// q_oracle_test.py.
#include "tests/algorithm/record.h"
#include "tests/schedule.h"
#include "wd/algorithms.h"

namespace wd {
namespace {

struct QCase {
  std::string name;
  std::vector<int> heads;
  bool masks;
  Activation activation;
};

class QRecords : public testing::TestWithParam<QCase> {};

TEST_P(QRecords, AnUpdate) {
  const QCase& c = GetParam();
  Spec spec;
  spec.roles = {{.name = "agent",
                 .count = kAgents,
                 .observation = {{"o", kObservation}},
                 .action = ActionSpace::discrete(c.heads),
                 .action_mask = c.masks}};
  spec.time_limit = kTimeLimit;
  PolicySettings settings;
  settings.name = "agent";
  settings.algorithm = AlgorithmChoice::named("PQN");
  auto& pqn = settings.algorithm.as<PqnSettings>();
  pqn.gamma = 0.97;
  pqn.lambda = 0.8;
  pqn.reward_scale = 0.3;
  pqn.lr = Schedule();
  pqn.lr.points = {{0.0, 0.0}, {2000.0, 0.02}};      // 0.01 at step 1000
  pqn.epsilon.points = {{0.0, 1.0}, {2000.0, 0.2}};  // 0.6 at step 1000
  pqn.max_grad_norm = 0.2;
  pqn.num_epochs = 2;
  pqn.num_minibatches = 3;
  pqn.adam_epsilon = 1e-4;  // large, so that Adam's step depends on the gradient's scale
  settings.model.fc_dims = {16, 8};
  settings.model.activation = c.activation;

  Trajectory trajectory({spec, {"agent"}, {0}, kSteps, kEnvs});
  PolicyBuffers& buffers = trajectory.policies()[0];
  Draws draws(8);
  fill_trajectory(draws, trajectory, false);
  Policy policy(buffers, settings.model, 0, kSeed, kChunkRows, {}, kFp32, PolicyOutput::kValues);
  Learner learner({&policy, 1}, trajectory, 0, settings, kSeed);
  const TrainingClock clock = clock_then();
  learner.begin_rollout(clock);
  for (int t = 0; t < kSteps; ++t)
    policy.act(buffers, t,
               {.seed = kSeed, .step = static_cast<std::uint64_t>(t), .exploration = learner.exploration()});
  policy.evaluate(buffers, kSteps);

  Record record;
  record.add("before.", policy, policy.parameters());
  prepare({&learner, 1});
  record_rollout(record, trajectory);
  record_order(record, spec, pqn, {});
  ASSERT_TRUE(update({&learner, 1}, clock));
  record.add("after.", policy, policy.parameters());
  for (const auto& [name, value] : learner.algorithm().metrics())
    record.add("metric." + name, at::full({}, value, at::kDouble));
  std::string heads;
  for (const int n : c.heads) heads += std::to_string(n) + " ";
  const auto text = [](auto value) { return concat(value); };
  record.write(record_folder() / (c.name + ".safetensors"),
               {{"heads", heads},
                {"activation", c.activation == kRelu ? "relu" : "tanh"},
                {"epsilon", text(value_at(pqn.epsilon, kEnvSteps))},
                {"gamma", text(pqn.gamma)},
                {"decay", text(pqn.lambda)},
                {"reward_scale", text(pqn.reward_scale)},
                {"lr", text(value_at(pqn.lr, kEnvSteps))},
                {"max_grad_norm", text(value_at(pqn.max_grad_norm, kEnvSteps))},
                {"adam_epsilon", text(pqn.adam_epsilon)}});
}

INSTANTIATE_TEST_SUITE_P(Updates, QRecords,
                         testing::Values(QCase{"one_head", {5}, false, kRelu},
                                         QCase{"heads_and_masks", {3, 4}, true, kTanh}),
                         [](const auto& info) { return info.param.name; });

TEST(Values, OfContinuousActionsAreRefused) {
  Spec spec;
  spec.roles = {{.name = "agent", .observation = {{"o", 2}}, .action = ActionSpace::box(1, -1.0f, 1.0f)}};
  const Trajectory trajectory({spec, {"agent"}, {0}, 2, 2});
  EXPECT_THROW(Policy(trajectory.policies()[0], {}, 0, 1, 64, {}, kFp32, PolicyOutput::kValues), UsageError);
}

}  // namespace
}  // namespace wd
