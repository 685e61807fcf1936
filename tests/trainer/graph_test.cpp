// graph_test.cpp: on the CPU a graph is the function itself.
#include "src/graph.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace wd
