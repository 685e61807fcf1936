// graph_test.cpp: on the CPU a graph calls its function directly.
#include "src/device/graph.h"

#include <gtest/gtest.h>

#include <vector>

namespace wd {
namespace {

TEST(Graph, CallsItsFunctionEveryTimeOnTheCpu) {
  for (const bool enabled : {false, true}) {
    Graph graph({}, enabled);
    int calls = 0;
    for (int i = 0; i < 5; ++i) graph.run([&] { ++calls; });
    EXPECT_EQ(calls, 5);
  }
}

TEST(Branches, AreCalledInTurnOnTheCpu) {
  Branches branches(Device{});
  std::vector<std::size_t> called;
  for (const std::size_t count : {0, 1, 3}) branches.each(count, [&](std::size_t k) { called.push_back(k); });
  EXPECT_EQ(called, (std::vector<std::size_t>{0, 0, 1, 2}));
}

}  // namespace
}  // namespace wd
