// table_layer_test.cpp: the table layer against the same layer over the rows derived from the table.
#include <iterator>

#include "tests/kernels/memory.h"
#include "tests/kernels/table_layer_data.h"

namespace wd {
namespace {

TEST(TableLayer, IsTheLayerOverRows) {
  Draws draws(3);
  std::vector<TableCase> cases = table_cases();
  std::ranges::copy(table_block_cases(), std::back_inserter(cases));
  for (const TableCase& c : cases) {
    SCOPED_TRACE(testing::Message() << c.agents << " agents, " << c.rows() << " of them, " << c.width);
    const TableData data = random_table(draws, c);
    expect_table(c, data, run_table(HostMemory(), c, data));
  }
}

TEST(TableLayer, LeavesPaddingAlone) {
  Draws draws(4);
  for (const TableCase& c : table_cases()) {
    const TableData data = random_table(draws, c);
    const TableResult found = run_table(HostMemory(), c, data);
    for (std::size_t i = 0; i < found.y.size(); ++i)
      ASSERT_EQ(std::isnan(found.y[i]), static_cast<int>(i) % c.y_stride() >= c.width) << i;
    for (std::size_t i = 0; i < found.weight_grad.size(); ++i) {
      if (static_cast<int>(i) % c.weight_stride() < c.inputs()) continue;
      ASSERT_EQ(found.weight_grad[i], data.weight[i]) << i;
    }
  }
}

}  // namespace
}  // namespace wd
