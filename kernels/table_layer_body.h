// table_layer_body.h: the layer over a table for a few units and a few outputs: one thread's share on a GPU,
// a tile of registers on a CPU.
#pragma once

#include <cstring>

#include "kernels/table_layer.h"
#include "wd/math.h"

namespace wd {

// Neighboring outputs: a float, or a vector of them.
template <typename Lane>
inline constexpr int kFloats = sizeof(Lane) / 4;

// A vector need not be aligned. nvcc would take the operands of memcpy for a single float as unaligned, too,
// and move single bytes.
template <typename Lane>
WD_FN Lane load_lane(const float* from) {
  if constexpr (kFloats<Lane> == 1) {
    return *from;
  } else {
    Lane lane;
    std::memcpy(&lane, from, sizeof(lane));
    return lane;
  }
}
template <typename Lane>
WD_FN void store_lane(float* to, Lane lane) {
  if constexpr (kFloats<Lane> == 1) {
    *to = lane;
  } else {
    std::memcpy(to, &lane, sizeof(lane));
  }
}

WD_FN float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
template <typename Lane>
WD_FN Lane multiply_add(Lane a, float b, Lane c) {
  return a * b + c;  // fused: see CMakeLists.txt
}

template <typename Lane>
WD_FN Lane positive_part(Lane v) {
  return v < 0.0f ? Lane{} : v;  // NaN stays NaN
}

// Computes rows y of `units` <= kUnits units from `unit` on, kVectors lanes of outputs from h on.
template <typename Lane, int kUnits, int kVectors>
WD_FN void forward_tile(const TableLayerArgs& args, std::int64_t unit, int units, int h) {
  const TableShape& s = args.shape;
  const int F = s.table.features, H = s.width, relative = s.table.relative, first = s.agent[0];
  const std::int64_t row = args.table_stride;
  const float* const weight = args.weight + h;
  const float* const shared = weight + s.others() * H;  // sums of W, own entries, bias
  const float* table[kUnits];
  for (int u = 0; u < kUnits; ++u) table[u] = args.table + (unit + (u < units ? u : 0)) * s.agents * row;

  Lane sum[kUnits][kVectors];
  for (int u = 0; u < kUnits; ++u)
    for (int q = 0; q < kVectors; ++q)
      sum[u][q] = load_lane<Lane>(shared + (s.terms() - 1) * H + q * kFloats<Lane>);
  const auto add = [&](const Lane* w, auto x) {
    for (int u = 0; u < kUnits; ++u) {
      const float factor = x(table[u]);
      for (int q = 0; q < kVectors; ++q) sum[u][q] = multiply_add(w[q], factor, sum[u][q]);
    }
  };
  const auto write = [&](int slot, int agent) {
    for (int u = 0; u < kUnits; ++u) {
      if (u >= units) break;
      float* const y = args.y + ((unit + u) * s.rows + slot) * args.y_stride + h;
      for (int q = 0; q < kVectors; ++q) {
        Lane value = sum[u][q];
        for (int k = 0; k < s.table.own; ++k)
          value = multiply_add(load_lane<Lane>(shared + (relative + k) * H + q * kFloats<Lane>),
                               table[u][agent * row + F + k], value);
        store_lane(y + q * kFloats<Lane>, args.relu ? positive_part(value) : value);
      }
    }
  };

  Lane w[kVectors];
  for (int k = 0; k + 1 < s.agents; ++k) {  // the first agent's row, entry by entry
    const int j = k < first ? k : k + 1;
    for (int f = 0; f < F; ++f) {
      const float* const from = weight + (static_cast<std::int64_t>(k) * F + f) * H;
      for (int q = 0; q < kVectors; ++q) w[q] = load_lane<Lane>(from + q * kFloats<Lane>);
      if (f < relative) {
        add(w, [=](const float* v) { return v[j * row + f] - v[first * row + f]; });
      } else {
        add(w, [=](const float* v) { return v[j * row + f]; });
      }
    }
  }
  write(0, first);
  for (int i = first, slot = 1; slot < s.rows; ++i) {  // each further row from the one before
    for (int f = 0; f < F; ++f) {
      const float* const from = weight + (static_cast<std::int64_t>(i) * F + f) * H;
      for (int q = 0; q < kVectors; ++q) {
        w[q] = load_lane<Lane>(from + q * kFloats<Lane>);
        if (f < relative) w[q] += load_lane<Lane>(shared + f * H + q * kFloats<Lane>);
      }
      add(w, [=](const float* v) { return v[i * row + f] - v[(i + 1) * row + f]; });
    }
    if (s.agent[slot] == i + 1) write(slot++, i + 1);
  }
}

// Adds the sums of kRows rows to the gradient.
template <typename Lane, int kRows, int kVectors>
WD_FN void add_to_rows(const Lane (&sum)[kRows][kVectors], float* gradient, int width) {
  for (int r = 0; r < kRows; ++r) {
    for (int q = 0; q < kVectors; ++q) {
      float* const to = gradient + r * width + q * kFloats<Lane>;
      store_lane(to, load_lane<Lane>(to) + sum[r][q]);
    }
  }
}

// Gradients that all rows share, from the slots of one part: kTerms gradients from `term` on, over all units.
// Call it before running_sums().
template <typename Lane, int kTerms, int kVectors>
WD_FN void shared_gradient_tile(const TableLayerArgs& args, int part, int term, int h) {
  const TableShape& s = args.shape;
  const int F = s.table.features, relative = s.table.relative;
  Lane sum[kTerms][kVectors] = {};
  for (std::int64_t unit = 0; unit < args.units; ++unit) {
    for (int slot = part; slot < s.rows; slot += s.parts) {
      const float* const g = args.y + (unit * s.rows + slot) * args.y_stride + h;
      const float* const v = args.table + (unit * s.agents + s.agent[slot]) * args.table_stride;
      Lane of_y[kVectors];
      for (int q = 0; q < kVectors; ++q) of_y[q] = load_lane<Lane>(g + q * kFloats<Lane>);
      for (int c = 0; c < kTerms; ++c) {
        const int k = term + c;
        const float factor = k < relative ? -v[k] : k + 1 < s.terms() ? v[F + k - relative] : 1.0f;
        for (int q = 0; q < kVectors; ++q) sum[c][q] = multiply_add(of_y[q], factor, sum[c][q]);
      }
    }
  }
  float* const to =
      args.gradient + (s.others() + static_cast<std::int64_t>(part) * s.terms() + term) * s.width + h;
  add_to_rows(sum, to, s.width);
}

// Replaces y[slot] by the sum of y[0] .. y[slot], for one unit.
template <typename Lane, int kVectors>
WD_FN void running_sums(const TableLayerArgs& args, std::int64_t unit, int h) {
  float* y = args.y + unit * args.shape.rows * args.y_stride + h;
  Lane sum[kVectors];
  for (int q = 0; q < kVectors; ++q) sum[q] = load_lane<Lane>(y + q * kFloats<Lane>);
  for (int slot = 1; slot < args.shape.rows; ++slot) {
    y += args.y_stride;
    for (int q = 0; q < kVectors; ++q) {
      sum[q] += load_lane<Lane>(y + q * kFloats<Lane>);
      store_lane(y + q * kFloats<Lane>, sum[q]);
    }
  }
}

// Gradients of W[k, f] for kTerms features from f on, over all units, except the part that is the same for
// all k. Call it after running_sums().
template <typename Lane, int kTerms, int kVectors>
WD_FN void others_gradient_tile(const TableLayerArgs& args, int k, int f, int h) {
  const TableShape& s = args.shape;
  const std::int64_t row = args.table_stride;
  // Rows of agents 0 .. k, which see agent k + 1 in this place; the others see agent k.
  const int below = s.upto[k];
  Lane sum[kTerms][kVectors] = {};
  for (std::int64_t unit = 0; unit < args.units; ++unit) {
    const float* const y = args.y + unit * s.rows * args.y_stride + h;
    const float* const v = args.table + (unit * s.agents + k) * row + f;
    const float* const total = y + (s.rows - 1) * args.y_stride;
    for (int q = 0; q < kVectors; ++q) {
      Lane low{}, high = load_lane<Lane>(total + q * kFloats<Lane>);
      if (below > 0) {
        low = load_lane<Lane>(y + (below - 1) * args.y_stride + q * kFloats<Lane>);
        high -= low;
        for (int c = 0; c < kTerms; ++c) sum[c][q] = multiply_add(low, v[row + c], sum[c][q]);
      }
      if (below < s.rows)
        for (int c = 0; c < kTerms; ++c) sum[c][q] = multiply_add(high, v[c], sum[c][q]);
    }
  }
  add_to_rows(sum, args.gradient + (static_cast<std::int64_t>(k) * s.table.features + f) * s.width + h,
              s.width);
}

// Computes entry h of row r of the weights from those of the layer.
WD_FN void weight_entry(const TableWeightsArgs& args, std::int64_t r, int h) {
  const TableShape& s = args.shape;
  const int F = s.table.features, others = s.agents - 1;
  const std::int64_t shared = r - s.others();
  const float* const row = args.layer_weight + h * args.stride;
  float value = 0.0f;
  if (shared < 0) {
    value = row[r % F * others + r / F];
  } else if (shared < s.table.relative) {
    for (int k = 0; k < others; ++k) value += row[shared * others + k];
  } else if (shared + 1 < s.terms()) {
    value = row[s.others() + shared - s.table.relative];
  } else {
    value = args.layer_bias[h];
  }
  args.weight[r * s.width + h] = value;
}

// Sets part 0 of entry h of a shared gradient to the sum of all parts.
WD_FN void sum_parts(const TableWeightsArgs& args, std::int64_t term, int h) {
  const TableShape& s = args.shape;
  float* const first = args.gradient + (s.others() + term) * s.width + h;
  float sum = *first;
  for (int part = 1; part < s.parts; ++part)
    sum += first[static_cast<std::int64_t>(part) * s.terms() * s.width];
  *first = sum;
}

// Writes the layer's gradient that belongs to entry h of row r of the weights; each W[k, f] also receives the
// gradient of their sum. Call it after sum_parts().
WD_FN void gradient_entry(const TableWeightsArgs& args, std::int64_t r, int h) {
  const TableShape& s = args.shape;
  const int F = s.table.features, others = s.agents - 1;
  const std::int64_t shared = r - s.others();
  const float* const sums = args.gradient + s.others() * s.width + h;
  const float value = args.gradient[r * s.width + h];
  float* const row = args.layer_weight + h * args.stride;
  if (shared < 0) {
    const std::int64_t f = r % F;
    row[f * others + r / F] = f < s.table.relative ? value + sums[f * s.width] : value;
  } else if (shared + 1 == s.terms()) {
    args.layer_bias[h] = value;
  } else if (shared >= s.table.relative) {
    row[s.others() + shared - s.table.relative] = value;
  }
}

}  // namespace wd
