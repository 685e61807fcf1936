// dqn_record_test.cpp: records iterations of DQN, with all that was played and all that was learned, in
// $WD_RECORD_DIR for dqn_oracle_test.py.
#include "tests/algorithm/record.h"

namespace wd {
namespace {

struct DqnCase {
  std::string name;
  std::vector<int> heads;
  bool masks;
  std::function<void(DqnSettings&, ModelSettings&)> set;
};

DqnSettings settings_of(const DqnCase& c, ModelSettings& model) {
  DqnSettings dqn;
  set_common(dqn, model);
  dqn.epsilon = 0.5;
  dqn.target_every = 2 * kSteps * kEnvs;
  c.set(dqn, model);
  return dqn;
}

class DqnRecords : public testing::TestWithParam<DqnCase> {};

TEST_P(DqnRecords, Iterations) {
  const DqnCase& c = GetParam();
  Spec spec = spec_of(ActionSpace::discrete(c.heads), c.masks);
  // Two numbers that describe each choice, for model.input: choices.
  Draws descriptions(5);
  const std::int64_t choices = spec.roles[0].action.choices();
  spec.roles[0].choice_features = {.size = 2, .fixed = descriptions.uniforms(2 * choices, -1.0f, 1.0f)};
  PolicySettings settings;
  settings.name = "agent";
  settings.algorithm = settings_of(c, settings.model);
  const auto& dqn = settings.algorithm.as<DqnSettings>();

  Trajectory trajectory({spec, Cast::of_roles(spec, {"agent"}, {0}), kSteps, kEnvs});
  Policy policy(trajectory.policies()[0], settings.model, 0, kSeed, kChunkRows, {}, kFp32,
                PolicyOutput::kValues);
  Learner learner({&policy, 1}, trajectory, 0, settings, kSeed);
  EXPECT_FALSE(learner.algorithm().wants_values());
  EXPECT_FALSE(learner.algorithm().can_be_undone());
  Record record;
  record.add("choices", at::tensor(spec.roles[0].choice_features.fixed).view({choices, 2}));
  record_iterations(record, policy, learner, trajectory);
  record.write(record_folder() / (c.name + ".safetensors"),
               replay_metadata(dqn, spec.roles[0].action,
                               {{"target_every", text(dqn.target_every)},
                                {"tau", text(dqn.tau)},
                                {"double_q", text(dqn.double_q ? 1 : 0)},
                                {"huber", text(dqn.huber)},
                                {"cql_alpha", text(dqn.cql_alpha)},
                                {"dueling", text(settings.model.dueling ? 1 : 0)},
                                {"quantiles", text(settings.model.quantiles)},
                                {"parametric", text(settings.model.input == kChoiceInput ? 1 : 0)}}));
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
