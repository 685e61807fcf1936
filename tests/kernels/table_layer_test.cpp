// table_layer_test.cpp: the table layer against the same layer over the rows derived from the table, in
// double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/memory.h"
#include "tests/kernels/table_layer_data.h"

namespace wd {
namespace {

double at(const std::vector<float>& values, std::int64_t i) { return values.at(static_cast<std::size_t>(i)); }

// The row of agent i in a unit, as defined in wd/spec.h.
std::vector<double> row_of(const TableCase& c, const TableData& data, int unit, int i) {
  const auto v = [&](int j, int f) {
    return at(data.table, (std::int64_t{unit} * c.agents + j) * c.table_stride() + f);
  };
  std::vector<double> row;
  for (int f = 0; f < c.table.features; ++f)
    for (int j = 0; j < c.agents; ++j)
      if (j != i) row.push_back(v(j, f) - (f < c.table.relative ? v(i, f) : 0.0));
  for (int k = 0; k < c.table.own; ++k) row.push_back(v(i, c.table.features + k));
  return row;
}

TEST(TableLayer, IsTheLayerOverRows) {
  Draws draws(3);
  for (const TableCase& c : table_cases()) {
    SCOPED_TRACE(testing::Message() << c.agents << " agents, " << c.rows() << " of them, " << c.width);
    const TableData data = random_table(draws, c);
    const TableResult found = run_table(HostMemory(), c, data);
    std::vector<double> weight_grad(data.weight.size()), bias_grad(data.bias.size());
    double largest = 0.0;
    for (int unit = 0; unit < c.units; ++unit) {
      for (int slot = 0; slot < c.rows(); ++slot) {
        const std::vector<double> row = row_of(c, data, unit, c.agent[static_cast<std::size_t>(slot)]);
        for (int h = 0; h < c.width; ++h) {
          const std::int64_t i = (std::int64_t{unit} * c.rows() + slot) * c.y_stride() + h;
          double y = at(data.bias, h);
          for (std::size_t k = 0; k < row.size(); ++k) {
            const std::size_t w = static_cast<std::size_t>(h * c.weight_stride()) + k;
            y += data.weight[w] * row[k];
            weight_grad[w] += at(data.y_grad, i) * row[k];
          }
          bias_grad[static_cast<std::size_t>(h)] += at(data.y_grad, i);
          ASSERT_NEAR(at(found.y, i), c.relu ? std::max(y, 0.0) : y, 1e-4) << unit << ' ' << slot << ' ' << h;
        }
      }
    }
    for (const double g : weight_grad) largest = std::max(largest, std::abs(g));
    for (int h = 0; h < c.width; ++h) {
      for (int k = 0; k < c.inputs(); ++k) {
        const std::int64_t w = std::int64_t{h} * c.weight_stride() + k;
        ASSERT_NEAR(at(found.weight_grad, w), weight_grad[static_cast<std::size_t>(w)], 1e-5 * largest)
            << h << ' ' << k;
      }
      ASSERT_NEAR(at(found.bias_grad, h), bias_grad[static_cast<std::size_t>(h)], 1e-4);
    }
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
