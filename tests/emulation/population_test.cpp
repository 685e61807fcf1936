// population_test.cpp: members of a population on the emulated GPU: the bits of single trainings, and about
// the launches of one.
#include <gmock/gmock.h>

#include <functional>
#include <iostream>

#include "src/device/lockstep.h"
#include "src/device/tensor_device.h"
#include "src/emulator/streams.h"
#include "tests/trainer/graph_cases.h"

namespace wd {
namespace {

constexpr int kMembers = 3, kIterations = 6;  // two lines of metrics, and graphs from the third iteration on

Experiment training_of(const GraphCase& of, int member) {
  std::vector<std::string> size = {"trainer.num_envs=4", "trainer.train_batch_size=32",
                                   concat("trainer.seed=", 7 + member)};
  if (std::string(of.env) == "tag_continuous")
    size.insert(size.end(), {"env.num_taggers=3", "env.num_runners=7"});
  Experiment training = of.setup(true, size);
  for (PolicySettings& policy : training.config.policies)
    if (policy.model.fc_dims == ModelSettings().fc_dims) policy.model.fc_dims = {64, 48};
  return training;
}

// Member k makes iterations(k) iterations.
std::vector<Trained> train_together(int members, const std::function<Experiment(int)>& training,
                                    const std::function<int(int)>& iterations) {
  std::vector<Trained> trained(static_cast<std::size_t>(members));
  std::vector<std::string> failures(trained.size());
  Lockstep all(members);
  all.run([&](int member) {
    const auto k = static_cast<std::size_t>(member);
    try {
      const Experiment own = training(member);
      trained[k] = train_with(own, iterations(member));
    } catch (const std::exception& error) {
      failures[k] = error.what();
    }
  });
  EXPECT_THAT(failures, testing::Each(testing::IsEmpty()));
  return trained;
}

int launches() {
  int total = 0;
  for (const auto& [name, count] : emulation::captured_launches()) total += count;
  return total;
}

class EmulatedPopulation : public testing::TestWithParam<GraphCase> {
 protected:
  void TearDown() override { emulation::set_progress(emulation::Progress::kImmediate); }
};

// A member that reads its neighbor's arguments, a sum over members, an order that depends on others.
TEST_P(EmulatedPopulation, HasTheBitsOfSingleTrainings) {
  const auto training = [](int member) { return training_of(GetParam(), member); };
  emulation::set_progress(emulation::Progress::kRandom);
  const std::vector<Trained> members =
      train_together(kMembers, training, [](int member) { return kIterations + member; });
  for (int member = 0; member < kMembers; ++member) {
    SCOPED_TRACE(member);
    expect_same_bits(train_with(training(member), kIterations + member),
                     members[static_cast<std::size_t>(member)]);
  }
}

// Else work of a member that is gone would be done for ever, on memory that others have by then.
TEST(GraphOfMembers, LeavesOutThoseThatHaveEnded) {
  const Device device{DeviceKind::kCuda, 0};
  const int runs[] = {4, 9, 6};
  std::vector<at::Tensor> counts;
  for (int k = 0; k < 3; ++k) counts.push_back(at::zeros({1}, torch_device(device)));
  Lockstep all(3);
  all.run([&](int member) {
    Graph graph(device, true);
    for (int run = 0; run < runs[member]; ++run)
      graph.run([&] { counts[static_cast<std::size_t>(member)].add_(1.0); });
  });
  for (std::size_t k = 0; k < counts.size(); ++k) EXPECT_EQ(counts[k].cpu().item<float>(), runs[k]);
}

// Else a product would read rows of a member that has ended, or of nobody.
TEST(BatchOfMembers, IsOfTensorsInOrderThatAreEquallyFarApart) {
  const at::Tensor rows = at::arange(24, at::kFloat).view({4, 6});
  const at::Tensor batch = batch_of({rows[0], rows[2]});
  ASSERT_TRUE(batch.defined());
  EXPECT_TRUE(batch.equal(at::stack({rows[0], rows[2]})));
  EXPECT_FALSE(batch_of({rows[0], rows[2], rows[3]}).defined());
  EXPECT_FALSE(batch_of({rows[1], rows[0]}).defined());
  EXPECT_FALSE(batch_of({rows[0], rows[1].clone()}).defined());
  EXPECT_FALSE(batch_of({rows[0]}).defined());
}

constexpr const char* kTogether[] = {"ppo",        "gaussian", "a2c",     "chain_bf16", "dqn",
                                     "sac",        "td3",      "qmix",    "gru",        "dqn_windows",
                                     "normalized", "gsde",     "entities"};

std::vector<GraphCase> cases() {
  std::vector<GraphCase> some;
  for (const char* const name : kTogether) some.push_back(graph_case(name));
  return some;
}

INSTANTIATE_TEST_SUITE_P(Trainings, EmulatedPopulation, testing::ValuesIn(cases()), name_of);

struct LaunchCase {
  const char *env, *precision;
};

class EmulatedPopulationLaunches : public testing::TestWithParam<LaunchCase> {};

// The device has the launches of one training, but for operations of torch, and those of each rollout's
// start.
TEST_P(EmulatedPopulationLaunches, AreThoseOfOne) {
  const auto training = [](int member) {
    return make_setup(GetParam().env,
                      {"trainer.num_envs=8", "trainer.train_batch_size=128",
                       concat("trainer.precision=", GetParam().precision), concat("trainer.seed=", member)});
  };
  emulation::captured_launches().clear();
  train_together(1, training, [](int) { return 4; });
  const int of_one = launches();
  emulation::captured_launches().clear();
  train_together(8, training, [](int) { return 4; });
  std::cout << GetParam().env << ", " << GetParam().precision << ": " << of_one << " launches of one member, "
            << launches() << " of 8\n";
  for (const auto& [name, count] : emulation::captured_launches())
    if (count > 16) std::cout << count << " " << name << "\n";
  EXPECT_LE(launches(), of_one * 13 / 10);
}

INSTANTIATE_TEST_SUITE_P(Trainings, EmulatedPopulationLaunches,
                         testing::Values(LaunchCase{"cartpole", "fp32"}, LaunchCase{"pendulum", "fp32"},
                                         LaunchCase{"simple_tag", "fp32"}),
                         [](const auto& info) {
                           return std::string(info.param.env) + "_" + info.param.precision;
                         });

}  // namespace
}  // namespace wd
