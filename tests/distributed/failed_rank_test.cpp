// failed_rank_test.cpp: if one rank may not learn from its rollout, no rank learns.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>

#include "src/algorithm/guard.h"
#include "tests/distributed/ranks.h"
#include "wd/algorithm.h"
#include "wd/error.h"

namespace wd {
namespace {

constexpr int kRolloutSteps = 6, kReplicas = 3;

Spec one_role_spec() {
  Spec spec;
  spec.roles = {
      {.name = "agent", .count = 2, .observation = {{"o", 3}}, .action = ActionSpace::discrete({2})}};
  spec.time_limit = 100;
  return spec;
}

// The rollouts are finite except for one reward of rank 1, in a row that does not count: no sum contains it.
// Only the guard sees it.
class OneRank {
 public:
  OneRank(const ProcessGroup& group, const char* algorithm)
      : group_(group),
        trajectory_(
            {one_role_spec(), Cast::of_roles(one_role_spec(), {"agent"}, {0}), kRolloutSteps, kReplicas}) {
    PolicyBuffers& buffers = trajectory_.policies()[0];
    settings_.algorithm = AlgorithmChoice::named(algorithm);
    if (settings_.algorithm
            .is<OnPolicySettings>())  // units follow before the update, and with them the output layer
      settings_.algorithm.as<OnPolicySettings>().normalize_value = false;
    policies_.emplace_back(buffers, settings_.model, 0, 7, 64, Device{});
    learner_.emplace(policies_, trajectory_, 0, settings_, 7, group);
    guard_.emplace(trajectory_, Device{}, 0);
    buffers.active.fill_(1);
    buffers.active[2][1][0] = 0;
    buffers.reward.fill_(1.0f);
    if (group.rank() == 1) buffers.reward[2][1][0] = std::nanf("");
  }

  // On the CPU the guard throws when it finds something. A GPU goes on, as this does.
  void watch() {
    try {
      guard_->check_finite(policies_, clock_);
    } catch (const std::runtime_error&) {
      EXPECT_EQ(group_.rank(), 1);
    }
    EXPECT_EQ(*guard_->failed() != 0, group_.rank() == 1);
  }
  void obey_the_guard() { learner_->algorithm().set_skip_flag(guard_->failed()); }
  void learn() {
    prepare({&*learner_, 1});
    update({&*learner_, 1}, clock_);
  }
  at::Tensor parameters() const { return policies_[0].parameters(); }
  bool same_everywhere() const {
    const at::Tensor both = group_.all_gather_rows(parameters().view({1, -1}));
    return at::equal(both[0], both[1]);
  }

 private:
  ProcessGroup group_;
  Trajectory trajectory_;
  PolicySettings settings_;
  std::vector<Policy> policies_;
  std::optional<Learner> learner_;
  std::optional<Guard> guard_;
  TrainingClock clock_{Device{}};
};

class FailedRank : public testing::TestWithParam<const char*> {};

TEST_P(FailedRank, StopsAllRanksInTheSameUpdate) {
  on_ranks(2, [](const ProcessGroup& group) {
    OneRank rank(group, GetParam());
    const at::Tensor before = rank.parameters().clone();
    rank.watch();
    rank.obey_the_guard();
    if (group.rank() == 1) {
      EXPECT_THAT([&] { rank.learn(); }, testing::ThrowsMessage<std::runtime_error>(
                                             testing::HasSubstr("the optimizer made no step with it")));
    } else {
      EXPECT_THAT([&] { rank.learn(); }, testing::ThrowsMessage<PeerError>(
                                             testing::HasSubstr("the rollout of rank 1 is not finite")));
    }
    EXPECT_TRUE(at::equal(rank.parameters(), before));
    EXPECT_TRUE(rank.same_everywhere());
  });
}

TEST_P(FailedRank, IsNotSeenInTheSums) {
  on_ranks(2, [](const ProcessGroup& group) {
    OneRank rank(group, GetParam());
    const at::Tensor before = rank.parameters().clone();
    rank.learn();
    EXPECT_FALSE(at::equal(rank.parameters(), before));
    EXPECT_TRUE(rank.same_everywhere());
  });
}

INSTANTIATE_TEST_SUITE_P(Algorithms, FailedRank, testing::Values("A2C", "PPO"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace wd
