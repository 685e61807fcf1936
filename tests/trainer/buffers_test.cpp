// buffers_test.cpp: trajectory buffers are allocated once and do not move, and learning reads them in place.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <regex>

#include "src/autoscale/memory_needed.h"
#include "src/report/plain_error.h"
#include "src/rollout/minibatches.h"
#include "tests/support.h"
#include "tests/trainer/held_bytes.h"
#include "wd/trainer.h"
#include "wd/trajectory.h"

namespace wd {
namespace {

std::vector<const void*> addresses(const Trajectory& trajectory) {
  std::vector<const void*> all;
  for (const at::Tensor& tensor : trajectory.buffers()) all.push_back(tensor.data_ptr());
  return all;
}

TEST(Buffers, AddressesStayOverIterations) {
  for (const std::string algorithm : {"A2C", "PPO", "REINFORCE"}) {
    const Experiment setup = make_setup(
        "tag_gridworld", {"trainer.num_envs=6", "trainer.train_batch_size=60", "env.episode_length=5",
                          "policy={shared: {algorithm: " + algorithm + "}}"});
    Trainer trainer(setup.config, *setup.environment, {});
    trainer.iterate();
    const auto before = addresses(trainer.trajectory());
    const void* const state = trainer.replicas().blocks().data_ptr();
    const void* const parameters = trainer.policies()[0].parameters().data_ptr();
    for (int i = 0; i < 3; ++i) trainer.iterate();
    EXPECT_EQ(before, addresses(trainer.trajectory())) << algorithm;
    EXPECT_EQ(state, trainer.replicas().blocks().data_ptr()) << algorithm;
    EXPECT_EQ(parameters, trainer.policies()[0].parameters().data_ptr()) << algorithm;
  }
}

TEST(Buffers, TheLearnerReadsTheRolloutItself) {
  const Experiment setup = make_setup("tag_gridworld", {"trainer.num_envs=6", "trainer.train_batch_size=60"});
  Trainer trainer(setup.config, *setup.environment, {});
  trainer.rollout();
  for (const PolicyBuffers& buffers : trainer.trajectory().policies()) {
    const Batch batch = whole_batch(buffers, trainer.trajectory().steps());
    EXPECT_EQ(batch.observation.data_ptr(), buffers.observation.data_ptr());
    EXPECT_EQ(batch.action.data_ptr(), buffers.action.data_ptr());
    EXPECT_EQ(batch.advantage.data_ptr(), buffers.advantage.data_ptr());
  }
}

TEST(Buffers, RowTBecomesRowZeroOfTheNextRollout) {
  const Experiment setup =
      make_setup("tag_continuous", {"trainer.num_envs=4", "trainer.train_batch_size=40"});
  Trainer trainer(setup.config, *setup.environment, {});
  trainer.rollout();
  const PolicyBuffers& buffers = trainer.trajectory().policies()[0];
  const at::Tensor last = buffers.observation[10].clone(), active = buffers.active[10].clone();
  trainer.rollout();
  EXPECT_TRUE(at::equal(buffers.observation[0], last));
  EXPECT_TRUE(at::equal(buffers.active[0], active));
  EXPECT_FALSE(at::equal(buffers.observation[10], last));
}

TEST(Buffers, BytesAreKnownBeforeTheyAreAllocated) {
  for (const auto& [env, settings] : {std::pair<const char*, std::vector<std::string>>("cartpole", {}),
                                      {"pendulum", {"trainer.precision=bf16"}},
                                      {"tag_gridworld", {}},
                                      {"tag_continuous", {"trainer.observations=table"}},
                                      {"simple_tag", {}}}) {
    std::vector<std::string> all = {"trainer.num_envs=6", "trainer.train_batch_size=42"};
    all.insert(all.end(), settings.begin(), settings.end());
    const Experiment setup = make_setup(env, all);
    Trainer trainer(setup.config, *setup.environment, {});
    const double bytes = trajectory_bytes(RolloutShape::of(setup.environment->spec(), setup.config, 6));
    EXPECT_EQ(bytes, held_bytes(trainer.trajectory())) << env;
    const scaling::MemoryNeeded needed = scaling::memory_needed(setup.config, *setup.environment, 1);
    EXPECT_EQ(needed.observations + needed.other_buffers, bytes) << env;
    EXPECT_EQ(needed.observations, observation_bytes(trainer.trajectory())) << env;
    EXPECT_EQ(needed.replicas,
              2.0 * held_bytes(trainer.replicas().blocks()) + held_bytes(trainer.replicas().dropped()))
        << env << ": now, and when the rollout began";
    EXPECT_EQ(needed.networks, network_bytes(trainer)) << env;
  }
}

// They can be most of the memory: eight times the rows of a perceptron of 2 x 64 on four numbers.
TEST(Buffers, ActivationsThatAreKeptAreInTheMemoryNeeded) {
  for (const char* model : {"fc_dims: [64, 64]", "fc_dims: [64, 64], separate_value: true",
                            "fc_dims: [40], layer_norm: true, activation: tanh"}) {
    for (const char* precision : {"fp32", "bf16"}) {
      SCOPED_TRACE(concat(model, ", ", precision));
      const Experiment setup = make_setup(
          "cartpole",
          {"trainer.num_envs=64", "trainer.train_batch_size=6400", concat("trainer.precision=", precision),
           concat("policy={shared: {algorithm: A2C, reuse_activations: true, model: {", model, "}}}")});
      Trajectory trajectory(setup.environment->spec(), setup.config, 64, {});
      const Policy policy(trajectory.policies()[0], setup.config, 0, {});
      const CountingMemory memory;
      policy.keep_activations(trajectory.policies()[0]);
      const double needed = scaling::memory_needed(setup.config, *setup.environment, 1).activations;
      EXPECT_GT(needed, 6400 * 64 * 2.0);
      EXPECT_LE(needed, memory.held()) << "it is a lower bound";
      // A CPU keeps float32 in bf16 too.
      const double part = setup.config.trainer.precision == kBf16 ? 0.45 : 0.9;
      EXPECT_GE(needed, part * memory.held()) << "and close";
    }
  }
}

// What is free changes a little from one call to the next.
TEST(Buffers, TheLargestSettingThatFitsIsKnown) {
  const auto job_with = [](std::int64_t replicas, const std::function<void(const scaling::Job&)>& f) {
    const Experiment setup = make_setup(
        "tag_gridworld",
        {concat("trainer.num_envs=", replicas), concat("trainer.train_batch_size=", replicas * 50)});
    f({setup.config, *setup.environment, {}});
  };
  std::int64_t most = 0;
  job_with(2'000'000, [&](const scaling::Job& job) {
    std::smatch match;
    const std::string text = scaling::largest_that_fits(job);
    ASSERT_TRUE(std::regex_search(text, match, std::regex("trainer.num_envs = ([0-9]+)"))) << text;
    most = std::stoll(match[1]);
  });
  job_with(most * 9 / 10, [](const scaling::Job& job) { EXPECT_NO_THROW(scaling::check_memory(job)); });
  job_with(most * 11 / 10,
           [](const scaling::Job& job) { EXPECT_THROW(scaling::check_memory(job), UsageError); });
}

TEST(Buffers, MemoryThatTorchCannotHaveIsOneLineWithARemedy) {
  try {
    at::empty({std::int64_t{1} << 50}, at::kByte);
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_THAT(plain_message(error),
                testing::MatchesRegex("out of memory: cannot allocate 1048576.0 GiB more; lower [^\n]+"));
  }
  EXPECT_EQ(plain_message(std::runtime_error("a\nb")), "a\nb");
}

TEST(Buffers, AllPoliciesShareTheFlagsOfReplicas) {
  Role role{"player", 3, {{"x", 5}}, ActionSpace::discrete({4, 3})};
  Spec spec{.roles = {role, role}, .time_limit = 10, .statistics = {{"score", "", ""}, {"goals", "", ""}}};
  spec.roles[1].name = "other";
  const Trajectory trajectory({spec, Cast::of_roles(spec, {"a", "b"}, {0, 1}), 4, 2});
  std::vector<std::string> common;
  trajectory.each_buffer([&](const BufferField& field, const at::Tensor& tensor) {
    if (field.owner != BufferField::kCommon) return;
    common.push_back(field.name);
    for (const PolicyBuffers& policy : trajectory.policies())
      EXPECT_EQ(field.of(policy).const_data_ptr(), tensor.const_data_ptr()) << field.name;
    EXPECT_FALSE(field.carried) << field.name << ": a rollout begins with observations only";
    EXPECT_EQ(field.row, nullptr) << field.name;
  });
  EXPECT_EQ(common, (std::vector<std::string>{"terminated", "truncated", "reset_step", "statistics"}));
  for (const at::Tensor& flags : {trajectory.terminated(), trajectory.truncated(), trajectory.reset_step()}) {
    EXPECT_EQ(flags.sizes().vec(), (std::vector<std::int64_t>{4, 2}));
    EXPECT_EQ(flags.scalar_type(), at::kByte);
  }
  EXPECT_EQ(trajectory.statistics().sizes().vec(), (std::vector<std::int64_t>{4, 2, 2}));
  EXPECT_EQ(trajectory.statistics().scalar_type(), at::kFloat);
  spec.statistics.clear();
  EXPECT_FALSE(Trajectory({spec, Cast::of_roles(spec, {"a", "b"}, {0, 1}), 4, 2}).statistics().defined());
}

TEST(Buffers, BytesOfMasksAndOfRolesThatShareAPolicy) {
  Role role{"player", 3, {{"x", 5}}, ActionSpace::discrete({4, 3}), true};
  Spec spec{.roles = {role, role}, .time_limit = 10, .statistics = {{"score", "", ""}}};
  spec.roles[1].name = "other";
  for (const std::vector<int>& policies : {std::vector{0, 0}, std::vector{1, 0}}) {
    const std::vector<std::string> names =
        policies[0] == 0 ? std::vector<std::string>{"all"} : std::vector<std::string>{"a", "b"};
    const RolloutShape shape{spec, Cast::of_roles(spec, names, policies), 4, 2};
    EXPECT_EQ(trajectory_bytes(shape), held_bytes(Trajectory(shape)));
  }
}

}  // namespace
}  // namespace wd
