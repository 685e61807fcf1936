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

INSTANTIATE_TEST_SUITE_P(Kernels, OnEmulatedGpu,
                         testing::Combine(testing::ValuesIn(all_twins<EmulatedMemory>()),
                                          testing::ValuesIn(emulation::kOrders)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + std::get<1>(info.param).name;
                         });

}  // namespace
}  // namespace wd
