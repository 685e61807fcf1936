// table_policy_test.cpp: policies that read tables give the same actions, values and training results as
// policies that read the rows derived from the tables.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "src/rollout/minibatches.h"
#include "tests/kernels/cuda_memory.h"
#include "tests/kernels/random_data.h"
#include "tests/rollout/rows_of_table.h"
#include "wd/algorithm.h"
#include "wd/network.h"
#include "wd/policy_gradient.h"

namespace wd {
namespace {

constexpr int kSteps = 6, kReplicas = 21, kAgents = 11;
constexpr ObservationTable kTableOfThree = {.features = 3, .relative = 2, .own = 1};
constexpr std::uint64_t kSeed = 7;

struct Case {
  std::string name;
  std::vector<int> policy_of_role = {};  // for three roles of 2, 5 and 4 agents
  bool separate = false, keep = false;
  Activation activation = kRelu;
  std::vector<int> fc_dims = {40, 20};
  bool layer_norm = false;
  DeviceKind device = DeviceKind::kCpu;
};

std::vector<Case> cases() {
  std::vector<Case> all = {
      {.name = "policy_a_role", .policy_of_role = {0, 1, 2}},
      {.name = "one_policy", .policy_of_role = {0, 0, 0}, .separate = true},
      {.name = "apart", .policy_of_role = {0, 1, 0}, .activation = kTanh},
      {.name = "kept", .policy_of_role = {0, 1, 1}, .keep = true},
      {.name = "no_hidden_layer", .policy_of_role = {0, 0, 1}, .separate = true, .fc_dims = {}},
      {.name = "layer_norm",
       .policy_of_role = {0, 1, 1},
       .separate = true,
       .activation = kTanh,
       .layer_norm = true},
      {.name = "layer_norm_kept", .policy_of_role = {0, 1, 0}, .keep = true, .layer_norm = true}};
  return all;
}

Spec spec_of_three_roles() {
  Spec spec;
  const std::vector<ObservationPart> seen = {{"others", kTableOfThree.row_size(kAgents)}};
  const ActionSpace action = ActionSpace::discrete({3, 4});
  spec.roles = {{.name = "a", .count = 2, .observation = seen, .action = action},
                {.name = "b", .count = 5, .observation = seen, .action = action},
                {.name = "c", .count = 4, .observation = seen, .action = action}};
  spec.time_limit = 100;
  spec.table = kTableOfThree;
  return spec;
}

void draw_into(Draws& draws, const at::Tensor& to, float low, float high) {
  to.copy_(at::tensor(draws.uniforms(to.numel(), low, high)).view(to.sizes()));
}

struct Side {
  Trajectory trajectory;
  std::vector<Policy> policies;

  Side(const Case& c, bool as_table, const at::Tensor& table, Precision precision = kFp32)
      : trajectory({spec_of_three_roles(),
                    Cast::of_roles(spec_of_three_roles(), names(c), c.policy_of_role),
                    kSteps,
                    kReplicas,
                    {c.device},
                    {ObservationType::kFloat32, as_table}}) {
    ModelSettings model;
    model.fc_dims = c.fc_dims;
    model.activation = c.activation;
    model.layer_norm = c.layer_norm;
    model.separate_value = c.separate;
    model.init_method = kTorchDefault;
    Draws draws(5);
    for (PolicyBuffers& buffers : trajectory.policies()) {
      if (as_table) {
        buffers.observation.narrow(3, 0, table.size(3)).copy_(table);
      } else {
        for (int slot = 0; slot < buffers.num_agents; ++slot)
          buffers.observation.select(2, slot)
              .narrow(2, 0, buffers.observation_size)
              .copy_(rows_of_table(kTableOfThree, table, buffers.agent[static_cast<std::size_t>(slot)]));
      }
      draw_into(draws, buffers.reward, -1.0f, 1.0f);
      buffers.active.fill_(1);
      policies.emplace_back(buffers, model, static_cast<int>(policies.size()), kSeed, 64, Device{c.device},
                            precision);
      if (c.keep) policies.back().keep_activations(buffers);
    }
  }

  static std::vector<std::string> names(const Case& c) {
    const int last = *std::max_element(c.policy_of_role.begin(), c.policy_of_role.end());
    std::vector<std::string> all = {"first", "second", "third"};
    all.resize(static_cast<std::size_t>(last) + 1);
    return all;
  }

  void play() {
    for (std::size_t p = 0; p < policies.size(); ++p) {
      for (int t = 0; t < kSteps; ++t)
        policies[p].act(trajectory.policies()[p], t, {.seed = kSeed, .step = static_cast<std::uint64_t>(t)});
      policies[p].evaluate(trajectory.policies()[p], kSteps);
    }
  }

  std::vector<Learner> learners(const PolicySettings& settings) {
    std::vector<Learner> all;
    for (std::size_t p = 0; p < policies.size(); ++p)
      all.emplace_back(policies, trajectory, static_cast<int>(p), settings, kSeed);
    prepare(all);
    return all;
  }
};

void expect_near(const at::Tensor& found, const at::Tensor& expected, double tolerance, const char* what) {
  const double scale = std::max(expected.abs().max().item<double>(), 1e-3);
  EXPECT_LT((found - expected).abs().max().item<double>(), tolerance * scale) << what;
}

PolicySettings plain_a2c() {
  A2cSettings a2c;
  a2c.normalize_value = false;
  PolicySettings settings;
  settings.algorithm = a2c;
  return settings;
}

class Tables : public testing::TestWithParam<Case> {
 protected:
  static at::Tensor table() {
    Draws draws(2);
    const at::Tensor all = at::empty({kSteps + 1, kReplicas, kAgents, kTableOfThree.columns()});
    draw_into(draws, all, -1.0f, 1.0f);
    return all;
  }
};

TEST_P(Tables, LeadToTheActionsValuesAndGradientsOfRows) {
  Side rows(GetParam(), false, table()), tables(GetParam(), true, table());
  rows.play();
  tables.play();
  const auto a2c = rows.learners(plain_a2c()), same = tables.learners(plain_a2c());
  for (std::size_t p = 0; p < rows.policies.size(); ++p) {
    const PolicyBuffers &a = rows.trajectory.policies()[p], &b = tables.trajectory.policies()[p];
    SCOPED_TRACE(a.name);
    ASSERT_TRUE(at::equal(rows.policies[p].parameters(), tables.policies[p].parameters()));
    ASSERT_TRUE(at::equal(a.action, b.action));
    expect_near(b.value, a.value, 1e-5, "values");
    expect_near(b.log_prob, a.log_prob, 1e-5, "log-probabilities");
    const at::Tensor sums = PolicyGradient(rows.policies[p]).accumulate(whole_batch(a, kSteps), {}),
                     others = PolicyGradient(tables.policies[p]).accumulate(whole_batch(b, kSteps), {});
    expect_near(others, sums, 1e-5, "sums");
    const at::Tensor expected = rows.policies[p].gradients(), found = tables.policies[p].gradients();
    expect_near(found, expected, 2e-5, "gradient");
    PolicyGradient(tables.policies[p]).accumulate(whole_batch(b, kSteps), {});
    EXPECT_TRUE(at::equal(found, tables.policies[p].gradients())) << "a second time";
  }
}

TEST_P(Tables, LearnInMinibatchesAsRowsDo) {
  Side rows(GetParam(), false, table()), tables(GetParam(), true, table());
  PpoSettings ppo;
  ppo.lr = 1e-3;
  ppo.gae_lambda = 1.0;
  ppo.normalize_advantage = false;
  ppo.num_epochs = 2;
  ppo.num_minibatches = 4;
  // With a smaller epsilon, parameters without a gradient would step along rounding errors.
  ppo.adam_epsilon = 1e-3;
  for (Side* side : {&rows, &tables}) {
    side->play();
    PolicySettings settings;
    settings.algorithm = ppo;
    auto learners = side->learners(settings);
    ASSERT_TRUE(update(learners, TrainingClock(Device{})));
  }
  const Side untouched(GetParam(), true, table());
  for (std::size_t p = 0; p < rows.policies.size(); ++p) {
    const at::Tensor before = untouched.policies[p].parameters(), after = rows.policies[p].parameters();
    expect_near(tables.policies[p].parameters() - before, after - before, 2e-3, "step");
    EXPECT_GT((after - before).abs().max().item<float>(), 1e-3f);
  }
}

// A critic of an algorithm's own adds the weights of actions to those of the table.
TEST_P(Tables, AreOnePartOfAnInputAmongOthers) {
  const Side rows(GetParam(), false, table()), tables(GetParam(), true, table());
  const std::vector<InputPart> further = {{"action", 3}, {"state", 2, true}};
  struct Result {
    at::Tensor output, gradient, action_grad, state_grad;
  };
  const auto result_of = [&](const PolicyBuffers& buffers) {
    std::vector<InputPart> parts = input_parts(buffers);
    parts.insert(parts.end(), further.begin(), further.end());
    ModelSettings model;
    model.fc_dims = GetParam().fc_dims;
    model.layer_norm = GetParam().layer_norm;
    const auto network = network_maker(buffers, model, parts, 2, {}, kFp32)();
    const at::Tensor flat = at::zeros({network->num_parameters()}), sums = at::zeros_like(flat);
    network->initialize(flat, kTorchDefault, 1.0, 3);
    network->bind(flat, {});
    network->parameters_changed();
    const std::int64_t n = std::int64_t{kReplicas} * buffers.num_agents;
    Draws draws(6);
    const at::Tensor action = at::empty({n, 3}), state = at::empty({kReplicas, 2}), grad = at::empty({n, 2});
    for (const at::Tensor& drawn : {action, state, grad}) draw_into(draws, drawn, -1.0f, 1.0f);
    const NetworkInput input{{buffers.observation_rows(2, 3), action, state}, {}, {}};
    const auto workspace = network->make_workspace(n, true);
    const auto gradient = network->make_gradient(sums);
    network->forward(input, *workspace);
    Result result{workspace->output.clone(), sums, at::empty_like(action), at::empty_like(state)};
    network->backward(input, grad, *workspace, gradient.get(),
                      std::array{at::Tensor(), result.action_grad, result.state_grad});
    if (gradient->derived.defined()) network->finish_gradient(gradient->derived, gradient->flat);
    return result;
  };
  for (std::size_t p = 0; p < rows.policies.size(); ++p) {
    const Result expected = result_of(rows.trajectory.policies()[p]),
                 found = result_of(tables.trajectory.policies()[p]);
    expect_near(found.output, expected.output, 1e-5, "output");
    expect_near(found.gradient, expected.gradient, 2e-5, "gradient");
    expect_near(found.action_grad, expected.action_grad, 2e-5, "gradient of actions");
    expect_near(found.state_grad, expected.state_grad, 2e-5, "gradient of the state");
  }
}

// Weights and what hidden layers compute are rounded to 8 bits; tables are not.
TEST_P(Tables, LearnInBfloat16UpToRounding) {
  Side exact(GetParam(), true, table()), rounded(GetParam(), true, table(), kBf16);
  for (Side* side : {&exact, &rounded}) side->play();
  for (std::size_t p = 0; p < exact.policies.size(); ++p) {
    PolicyBuffers &a = exact.trajectory.policies()[p], &b = rounded.trajectory.policies()[p];
    expect_near(b.value, a.value, 3e-2, "value");
    b.action.copy_(a.action);
    for (PolicyBuffers* buffers : {&a, &b}) {
      buffers->log_prob.copy_(a.log_prob);
      buffers->advantage.fill_(1);
      buffers->target.fill_(0.5);
      buffers->mask.fill_(1);
      buffers->activations = nullptr;
    }
    PolicyGradient(exact.policies[p]).accumulate(whole_batch(a, kSteps), {});
    PolicyGradient(rounded.policies[p]).accumulate(whole_batch(b, kSteps), {});
    // bfloat16 pads the rows of parameters, so this compares norms.
    const double wanted = exact.policies[p].gradients().norm().item<double>();
    EXPECT_NEAR(rounded.policies[p].gradients().norm().item<double>(), wanted, 3e-2 * wanted);
    EXPECT_FALSE(GetParam().fc_dims.size() > 1 && at::equal(a.value, b.value)) << "nothing was rounded";
  }
}

INSTANTIATE_TEST_SUITE_P(All, Tables, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

TEST(Tables, AreRefusedWhereThereIsNoneOrInBfloat16) {
  Spec spec = spec_of_three_roles();
  const std::vector<std::string> names = {"a"};
  const std::vector<int> roles = {0, 0, 0};
  EXPECT_THROW(
      Trajectory({spec, Cast::of_roles(spec, names, roles), 2, 1, {}, {ObservationType::kBfloat16, true}}),
      UsageError);
  spec.table = {};
  EXPECT_THROW(
      Trajectory({spec, Cast::of_roles(spec, names, roles), 2, 1, {}, {ObservationType::kFloat32, true}}),
      UsageError);
}

}  // namespace
}  // namespace wd
