// heads_test.cpp: the table of heads has a row for all that is allowed, and networks and policies are made as
// their row says.
#include "src/config/heads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "src/config/compatible.h"
#include "src/policy/impl.h"
#include "wd/error.h"
#include "wd/model.h"
#include "wd/network.h"

namespace wd {
namespace {

constexpr PolicyOutput kAllOutputs[] = {PolicyOutput::kDistribution, PolicyOutput::kValues,
                                        PolicyOutput::kPoint, PolicyOutput::kActor};

const ActionSpace& space_of(bool continuous) {
  static const ActionSpace choices = ActionSpace::discrete({3, 4}), box = ActionSpace::box(3, -1.0f, 2.0f);
  return continuous ? box : choices;
}

ModelSettings model_of(ContinuousDistribution setting) {
  ModelSettings model;
  model.fc_dims = {8, 5};
  model.distribution = setting;
  return model;
}

bool is_allowed(const ActionSpace& space, const ModelSettings& model, PolicyOutput output) {
  Usage usage;
  add_model(usage, model);
  add_output(usage, output);
  add_actions(usage, space);
  return usage.problems().empty();
}

Policy make_policy(const Head& head, bool separate) {
  Spec spec;
  spec.roles = {{.name = "agent", .observation = {{"o", 4}}, .action = space_of(head.actions == Head::kBox)}};
  const Trajectory trajectory({spec, Cast::of_roles(spec, {"agent"}, {0}), 2, 2});
  ModelSettings model = model_of(head.setting);
  model.separate_value = separate;
  return Policy(trajectory.policies()[0], model, 0, 1, 64, {}, kFp32, head.output);
}

std::int64_t numbers_of(const Policy& policy, const std::string& name) {
  for (const NamedTensor& named : policy.named_parameters())
    if (named.name == name) return named.tensor.numel();
  return 0;
}

// Nothing that is refused has a row, so that each row is used, and of what is allowed none is missing.
TEST(Heads, AreThoseOfAllThatIsAllowed) {
  std::set<const Head*> found;
  std::size_t allowed = 0;
  for (const PolicyOutput output : kAllOutputs)
    for (const bool continuous : {false, true})
      for (int k = 0; k < static_cast<int>(std::size(kContinuousDistributionNames)); ++k) {
        const ModelSettings model = model_of(static_cast<ContinuousDistribution>(k));
        SCOPED_TRACE(concat("output ", static_cast<int>(output), continuous ? " of a box, " : " of choices, ",
                            kContinuousDistributionNames[k]));
        if (!is_allowed(space_of(continuous), model, output)) {
          EXPECT_THROW(Head::of(space_of(continuous), model, output), std::runtime_error);
          continue;
        }
        ++allowed;
        ASSERT_NO_THROW(found.insert(&Head::of(space_of(continuous), model, output)));
      }
  EXPECT_EQ(found.size(), allowed);
  EXPECT_EQ(found.size(), Head::all().size());
}

TEST(Heads, UseEveryDistribution) {
  for (int d = 0; d <= static_cast<int>(Distribution::kStateGaussian); ++d)
    EXPECT_NE(std::ranges::count(Head::all(), static_cast<Distribution>(d), &Head::distribution), 0) << d;
}

// Python tells heads apart by these names.
TEST(Heads, HaveTheNamesOfTheirSettings) {
  for (const Head& head : Head::all()) {
    if (head.output == PolicyOutput::kDistribution && head.actions == Head::kBox) {
      EXPECT_STREQ(head.name, kContinuousDistributionNames[head.setting]);
    }
    for (const Head& other : Head::all()) {
      EXPECT_EQ(head.name == std::string(other.name), head.distribution == other.distribution);
    }
  }
}

TEST(Heads, ThatSquashNeedBounds) {
  const ActionSpace free = ActionSpace::box({{-1.0f, 1.0f}, {-INFINITY, INFINITY}});
  for (const Head& head : Head::all())
    if (head.actions == Head::kBox) {
      EXPECT_EQ(is_allowed(free, model_of(head.setting), head.output), !head.squashes) << head.name;
    }
}

TEST(Heads, DescribeTheNetworksThatAreMade) {
  for (const Head& head : Head::all())
    for (const bool separate : {false, true}) {
      if (separate && !head.has_state_value()) continue;
      SCOPED_TRACE(concat(head.name, separate ? ", with a network of the value" : ""));
      const Policy policy = make_policy(head, separate);
      const ActionSpace& space = space_of(head.actions == Head::kBox);
      EXPECT_EQ(&policy.head(), &head);
      const ActionLayout& layout = policy.action_layout();
      EXPECT_EQ(layout.distribution, head.distribution);
      EXPECT_EQ(layout.columns(), head.deviations == Head::kOutputs ? 2 * space.components()
                                                                    : space.components() + space.choices());
      EXPECT_EQ(layout.action_width(), space.width());
      EXPECT_EQ(layout.latent, head.uses_latent ? 5 : 0);
      EXPECT_EQ(policy.has_critic(), separate);
      EXPECT_EQ(policy.model().network(0).outputs(),
                layout.columns() + (head.has_state_value() && !separate));
      EXPECT_EQ(numbers_of(policy, "policy_head.bias"), layout.columns());
      EXPECT_EQ(numbers_of(policy, "value_head.bias"), head.has_state_value() ? 1 : 0);
      const int log_std = head.num_log_std(space, model_of(head.setting));
      EXPECT_EQ(numbers_of(policy, "log_std"), log_std);
      EXPECT_EQ(log_std,
                head.deviations != Head::kNumbers ? 0 : space.components() * (head.uses_latent ? 5 : 1));
    }
}

// Orthogonal weights [outputs, 5] have as many directions of length `gain` as the smaller size.
TEST(Heads, BeginWithTheirGain) {
  for (const Head& head : Head::all()) {
    SCOPED_TRACE(head.name);
    const Policy policy = make_policy(head, false);
    for (const NamedTensor& named : policy.named_parameters()) {
      const double gain = head.gain, square = named.tensor.square().sum().item<double>();
      if (named.name == "value_head.weight") {
        EXPECT_GT(square, 0.1);
      } else if (named.name == "policy_head.weight" && !head.has_state_value()) {
        EXPECT_NEAR(square / (gain * gain), std::min(5, policy.model().network(0).outputs()), 1e-3);
      } else if (named.name == "policy_head.weight") {
        EXPECT_LT(square, 5.0 * gain * gain * 1.001);
      }
    }
  }
}

TEST(Heads, RefuseMorePartsThanKernelsHave) {
  const Head& choices = Head::all().front();
  EXPECT_EQ(choices.layout(ActionSpace::discrete(std::vector<int>(kMaxHeads, 2))).num_heads, kMaxHeads);
  try {
    choices.layout(ActionSpace::discrete(std::vector<int>(kMaxHeads + 1, 2)));
    ADD_FAILURE() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "an action has 17 heads; at most 16: give the rest to further agents");
  }
}

}  // namespace
}  // namespace wd
