// rows_of_table.h: computes an agent's observations from tables, as defined in wd/spec.h.
#pragma once

#include <ATen/ATen.h>

#include "wd/spec.h"

namespace wd {

// Rows [T + 1, E, row size] of agent i, from tables [T + 1, E, N, columns and padding].
inline at::Tensor rows_of_table(const ObservationTable& table, const at::Tensor& tables, int i) {
  std::vector<at::Tensor> parts;
  for (int f = 0; f < table.features; ++f) {
    const at::Tensor all = tables.select(3, f), seen = f < table.relative ? all - all.narrow(2, i, 1) : all;
    parts.push_back(seen.narrow(2, 0, i));
    parts.push_back(seen.narrow(2, i + 1, tables.size(2) - 1 - i));
  }
  parts.push_back(tables.select(2, i).narrow(2, table.features, table.own));
  return at::cat(parts, 2);
}

}  // namespace wd
