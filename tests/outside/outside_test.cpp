// outside_test.cpp: environments whose replicas are elsewhere, on the CPU (emulation/outside_test.cpp: on the
// emulated GPU).
#include "wd/outside.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "src/replicas/host_rows.h"
#include "tests/outside/outside_cases.h"
#include "tests/support.h"
#include "wd/detail/parallel.h"
#include "wd/experiment.h"
#include "wd/trainer.h"

namespace wd::counted {
namespace {

using testing::ElementsAre;

class OutsideRows : public testing::TestWithParam<Case> {};

TEST_P(OutsideRows, AreThoseOfTheSameGameAsAnEnvironmentOfOurs) { expect_same_rollout(GetParam(), {}); }

INSTANTIATE_TEST_SUITE_P(Games, OutsideRows, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(OutsideVectorEnv, IsThatOfTheSameGameAsAnEnvironmentOfOurs) {
  for (const AutoReset mode : {AutoReset::kNextStep, AutoReset::kSameStep, AutoReset::kDisabled})
    expect_same_vector_env(mode, {});
}

// --- write() alone: one replica of two agents, whose rows have gaps ---

struct OneReplica {
  Spec spec = {.roles = {{.name = "player",
                          .count = 2,
                          .observation = {{"x", 1}},
                          .action = ActionSpace::discrete({2}),
                          .action_mask = true}},
               .time_limit = 3};
  OutsideLayout outside{spec};
  StateLayout layout = outside.state();
  std::vector<std::byte> block = std::vector<std::byte>(layout.block_bytes);
  float observation[2] = {}, reward[2] = {}, seen[2] = {}, paid[2] = {};
  std::uint8_t active[2] = {}, restarted[2] = {}, left[2] = {}, mask[6] = {}, legal[4] = {0, 0, 0, 1},
               there[2] = {1, 1}, terminated = 9, truncated = 9, reset = 9;
  StepView view;

  OneReplica() {
    view.num_replicas = 1;
    view.add_roles(spec);
    view.blocks = block.data();
    SeatView& seat = view.seats[0];
    seat.observation = seen, seat.reward = paid, seat.active = active, seat.restarted = restarted;
    seat.agent_terminated = left, seat.action_mask = mask, seat.mask_width = 3;
    view.terminated = &terminated, view.truncated = &truncated, view.reset_step = &reset;
    header() = ReplicaHeader{};
  }
  ReplicaHeader& header() { return *reinterpret_cast<ReplicaHeader*>(block.data()); }
  void write(OutsideStep step) {
    step.observation = observation, step.reward = reward, step.in_game = there, step.action_mask = legal;
    outside.write(layout, view, 0, step);
  }
  std::vector<int> flags() const { return {terminated, truncated, reset}; }
};

TEST(OutsideWrite, EndsOfTheGameAndOfTheTimeLimit) {
  OneReplica one;
  one.write({.resets = true});
  EXPECT_THAT(one.flags(), ElementsAre(0, 0, 1));
  EXPECT_FALSE(OutsideLayout::resets(one.layout, one.view, 0));
  one.write({.truncated = true});
  EXPECT_THAT(one.flags(), ElementsAre(0, 1, 0));
  EXPECT_TRUE(OutsideLayout::resets(one.layout, one.view, 0));
  one.write({.resets = true});
  one.write({.terminated = true, .truncated = true});
  EXPECT_THAT(one.flags(), ElementsAre(1, 0, 0)) << "what ends for good is not cut off too";
  for (const bool terminates : {false, true}) {
    one.view.at_time_limit = terminates ? AtTimeLimit::kTerminates : AtTimeLimit::kTruncates;
    one.write({.resets = true});
    for (int t = 0; t < 3; ++t) {
      EXPECT_FALSE(OutsideLayout::resets(one.layout, one.view, 0));
      one.write({});
    }
    EXPECT_THAT(one.flags(), ElementsAre(terminates, !terminates, 0));
    one.header().t = 2;
    one.write({.truncated = true});
    EXPECT_THAT(one.flags(), ElementsAre(0, 1, 0)) << "the game knows better";
  }
  EXPECT_EQ(one.header().episode, 3u);
}

TEST(OutsideWrite, AgentsThatLeaveAndComeBack) {
  OneReplica one;
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  one.reward[0] = kNaN, one.reward[1] = 5.0f;
  one.there[1] = 0;
  one.write({.resets = true});
  EXPECT_THAT(one.paid, ElementsAre(0.0f, 0.0f)) << "rewards of a reset are not read";
  EXPECT_THAT(one.active, ElementsAre(1, 0));
  EXPECT_THAT(one.restarted, ElementsAre(1, 1));
  EXPECT_THAT(one.mask, ElementsAre(0, 0, 0, 0, 1, 0)) << "of an agent in the game, masks are passed on";
  one.reward[0] = 5.0f;
  one.there[0] = 0, one.there[1] = 1;
  one.write({});
  EXPECT_THAT(one.paid, ElementsAre(5.0f, 0.0f)) << "of the second agent, no row is there to learn it";
  EXPECT_THAT(one.left, ElementsAre(1, 0));
  EXPECT_THAT(one.restarted, ElementsAre(0, 1));
  EXPECT_THAT(one.mask, ElementsAre(1, 1, 0, 0, 1, 0)) << "something is drawn in every row";
  one.reward[0] = kNaN;
  one.write({});
  EXPECT_TRUE(std::isnan(one.paid[0])) << "it is reported";
  EXPECT_EQ(one.paid[1], 5.0f);
  EXPECT_THAT(one.left, ElementsAre(0, 0));
  std::uint8_t flags[2] = {9, 9};
  OutsideLayout::in_game(one.layout, one.block.data(), flags);
  EXPECT_THAT(flags, ElementsAre(0, 1));
}

TEST(OutsideLayouts, RefuseWhatOnlyEnvironmentsOfOursHave) {
  const auto fault = [](Spec spec) { return usage_error_of([&] { OutsideLayout layout(spec); }); };
  Spec spec = Outside().spec();
  EXPECT_EQ(fault(spec), "");
  spec.roles[1].paid_after_leaving = true;
  EXPECT_EQ(fault(spec), "an environment outside cannot have agents that are paid after leaving");
  spec.streams = {{.name = "seen"}};
  EXPECT_EQ(fault(spec), "an environment outside cannot have streams of agents or of bytes");
  const Outside outside;
  EXPECT_THAT(usage_error_of([&] { Replicas(outside, {.reset = ResetMode::kGiven, .starts = "[{}]"}); }),
              testing::HasSubstr("begins its episodes itself"));
}

// --- replicas of games ---

// [E] rows of one step of each role.
struct Rows {
  Replicas replicas;
  Trajectory trajectory;

  Rows(const Environment& environment, const ReplicasOptions& options)
      : replicas(environment, options),
        trajectory(RolloutShape::of_roles(environment.spec(), options.num_envs)) {
    replicas.step(trajectory.first_rows());
  }
  void step() {
    trajectory.carry_over();
    for (PolicyBuffers& policy : trajectory.policies()) policy.action.fill_(1);
    replicas.step(trajectory.rows(0));
  }
  at::Tensor seen(int role = 0) const {
    return trajectory.policies()[static_cast<std::size_t>(role)].observation[1];
  }
};

// As when a training goes on from a checkpoint: the blocks are in an episode that the games do not know.
TEST(ReplicasOfGames, BeginEpisodesThatTheyDoNotKnow) {
  const Outside outside;
  const ReplicasOptions options = {.num_envs = 3, .seed = 4};
  Rows before(outside, options);
  before.step();
  Replicas resumed(outside, options);
  resumed.blocks().copy_(before.replicas.blocks());
  ASSERT_EQ(resumed.header(0).reset_pending + resumed.header(1).reset_pending, 0);
  const std::uint32_t episode = resumed.header(0).episode;
  resumed.step(before.trajectory.rows(0));
  EXPECT_TRUE(before.trajectory.reset_step().to(at::kBool).all().item<bool>());
  EXPECT_EQ(resumed.header(0).episode, episode + 1);
  EXPECT_EQ(resumed.header(0).t, 0);
}

TEST(ReplicasOfGames, AreTheSameHoweverWorkersShareThem) {
  const Outside outside;
  Rows all(outside, {.num_envs = 4, .seed = 4}), first(outside, {.num_envs = 2, .seed = 4}),
      second(outside, {.num_envs = 2, .first_replica = 2, .seed = 4});
  for (int t = 0; t < 20; ++t) {
    for (Rows* const rows : {&all, &first, &second}) rows->step();
    ASSERT_TRUE(at::equal(all.seen(), at::cat({first.seen(), second.seen()}))) << t;
  }
}

TEST(ReplicasOfGames, ShowWhatTheGameShows) {
  const Outside outside;
  Rows rows(outside, {.num_envs = 2, .pictures = true});
  const Picture picture = rows.replicas.picture(1);
  EXPECT_EQ(picture.width, 1);
  EXPECT_EQ(picture.pixels.size(), 3u);
}

TEST(OutsideTraining, GivesTheSameWeightsWithAnyNumberOfThreads) {
  const int before = num_threads();
  std::vector<at::Tensor> weights;
  for (const int threads : {1, 2}) {
    const Experiment setup = load_experiment(
        std::make_unique<Outside>(),
        {"trainer.device=cpu", "trainer.num_envs=16", "trainer.train_batch_size=320", "trainer.seed=3",
         concat("trainer.threads=", threads), "policy={caller: {algorithm: PPO}, pilot: {algorithm: A2C}}"});
    EXPECT_EQ(setup.config.name, "counted");
    EXPECT_FALSE(setup.config.trainer.cuda_graphs);
    Trainer trainer(setup.config, *setup.environment, setup.device);
    for (int i = 0; i < 3; ++i) trainer.iterate();
    for (const Policy& policy : trainer.policies()) weights.push_back(policy.parameters().clone());
  }
  set_num_threads(before);
  ASSERT_EQ(weights.size(), 4u);
  EXPECT_TRUE(at::equal(weights[0], weights[2]));
  EXPECT_TRUE(at::equal(weights[1], weights[3]));
}

// --- rows in memory of the host (the GPU is memory of the host too here) ---

// Steps through copies, as Replicas does on a GPU.
class Copied final : public OutsideReplicas {
 public:
  explicit Copied(std::unique_ptr<OutsideReplicas> of) : of_(std::move(of)) {}
  void step(const StateLayout& layout, const StepView& view) override {
    const StepView host = rows_.begin(layout, view);
    // Nothing that the host reads or writes is the device's.
    const auto expect_moved = [](const void* of_host, const void* of_device) {
      EXPECT_TRUE(of_device == nullptr ? of_host == nullptr : of_host != of_device);
    };
    for (int r = 0; r < host.num_seats; ++r) {
      const SeatView &here = host.seats[r], &there = view.seats[r];
      expect_moved(here.bounds, there.bounds);
      expect_moved(here.action, there.action);
      expect_moved(here.reward, there.reward);
      expect_moved(here.agent_terminated, there.agent_terminated);
      expect_moved(here.active, there.active);
      expect_moved(here.restarted, there.restarted);
      expect_moved(here.observation, there.observation);
      expect_moved(here.action_mask, there.action_mask);
      EXPECT_EQ(here.policy_agents, here.count);
    }
    expect_moved(host.blocks, view.blocks);
    expect_moved(host.chosen, view.chosen);
    expect_moved(host.terminated, view.terminated);
    expect_moved(host.truncated, view.truncated);
    expect_moved(host.reset_step, view.reset_step);
    of_->step(layout, host);
    rows_.end();
  }

 private:
  std::unique_ptr<OutsideReplicas> of_;
  HostRows rows_{Device{}};
};

class CopiedOutside final : public OutsideEnvironment {
 public:
  std::string_view name() const override { return "copied"; }
  Spec spec() const override { return Outside().spec(); }
  std::unique_ptr<OutsideReplicas> open(const OutsideOptions& options) const override {
    return std::make_unique<Copied>(Outside().open(options));
  }
};

TEST(HostRows, GiveTheRowsOfSteppingDirectly) {
  const Outside outside;
  const CopiedOutside copying;
  for (const Case& of : cases()) {
    if (of.at_time_limit != AtTimeLimit::kTruncates) continue;
    SCOPED_TRACE(of.name);
    const wd::Game direct = play(outside, of, {}), copied = play(copying, of, {});
    expect_same_rows(direct.trajectory(), copied.trajectory());
    EXPECT_TRUE(at::equal(direct.replicas().blocks(), copied.replicas().blocks()));
  }
}

// Rows and blocks of replicas that are not chosen stay as they are, and actions of all runs are read.
TEST(HostRows, LeaveTheRowsOfOtherReplicasAlone) {
  const Outside outside;
  const CopiedOutside copying;
  VectorEnv direct(outside, {.num_envs = 4, .seed = 2}, AutoReset::kDisabled),
      copied(copying, {.num_envs = 4, .seed = 2}, AutoReset::kDisabled);
  const auto rows = [](const VectorEnv& env) {
    std::vector<at::Tensor> all = {env.replicas().blocks(), env.all().terminated, env.all().reset};
    for (const VectorEnv::RoleRows& role : env.roles())
      all.insert(all.end(), {role.observation, role.reward, role.active, role.terminated});
    all.push_back(env.roles()[0].action_mask);
    return all;
  };
  direct.restart(2);
  copied.restart(2);
  const at::Tensor some = at::tensor({1, 0, 1, 0}).to(at::kBool);
  for (int t = 0; t < 30; ++t) {
    direct.step();
    copied.step();
    if (t % 4 == 3) {
      direct.reset(some);
      copied.reset(some);
    }
    const std::vector<at::Tensor> a = rows(direct), b = rows(copied);
    for (std::size_t k = 0; k < a.size(); ++k) ASSERT_TRUE(at::equal(a[k], b[k])) << t << ' ' << k;
  }
}

}  // namespace
}  // namespace wd::counted
