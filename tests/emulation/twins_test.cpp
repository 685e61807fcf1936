// twins_test.cpp: compares every kernel on the emulated GPU with its CPU twin, for every order of blocks and
// threads.
#include "tests/kernels/twins.h"

#include "src/emulator/races.h"
#include "tests/emulation/emulated_memory.h"
#include "tests/emulation/orders.h"

namespace wd {
namespace {

using Case = std::tuple<Twins, emulation::NamedOrder>;

class OnEmulatedGpu : public testing::TestWithParam<Case> {};

TEST_P(OnEmulatedGpu, TwinsAgree) {
  const auto& [twins, order] = GetParam();
  emulation::set_order(order);
  emulation::Races::instance().enable(order.order == emulation::Order::kForward);
  twins.compare();
  emulation::Races::instance().enable(false);
}

// The sums of a part in the order of its tiles, and parts in order.
TEST(EmulatedPerceptron, HasTheSameBitsInEveryOrder) {
  const PerceptronCase c{700, 48, 43};
  Draws draws(11);
  PerceptronData data = random_perceptron_data(c, draws);
  data.weight = draws.uniforms(static_cast<std::int64_t>(data.weight.size()), -0.3f, 0.3f);
  const std::vector<float> before(static_cast<std::size_t>(c.shape().begin(3)), 0.5f);
  std::vector<float> expected;
  for (const emulation::NamedOrder& order : emulation::kOrders) {
    emulation::set_order(order);
    const std::vector<float> found = run_perceptron(EmulatedMemory(), c, data, before);
    if (expected.empty()) expected = found;
    EXPECT_EQ(found, expected) << order.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, OnEmulatedGpu,
                         testing::Combine(testing::ValuesIn(all_twins<EmulatedMemory>()),
                                          testing::ValuesIn(emulation::kOrders)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + std::get<1>(info.param).name;
                         });

}  // namespace
}  // namespace wd
