// orders.h: the orders of blocks and threads in which tests run kernels on the emulated GPU.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "wd/emulator/emulation.h"

namespace wd::emulation {

struct NamedOrder {
  const char* name;
  Order order;
  std::uint64_t seed = 1;
};

inline constexpr NamedOrder kOrders[] = {{"Forward", Order::kForward},
                                         {"Backward", Order::kBackward},
                                         {"Shuffled", Order::kShuffled, 1},
                                         {"ShuffledAgain", Order::kShuffled, 2}};

inline void set_order(const NamedOrder& order) { set_order(order.order, order.seed); }

}  // namespace wd::emulation
