// table_layer.cpp: the layer over a table on the CPU: tiles of three units by 32 outputs, whose sums stay in
// registers.
#include "kernels/table_layer.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/table_layer_body.h"
#include "wd/detail/parallel.h"
#include "wd/detail/profile.h"
#include "wd/detail/vectors.h"

namespace wd {
namespace {

// Neighboring outputs: a float, or a vector of them.
template <typename Lane>
constexpr int kFloats = sizeof(Lane) / 4;

// A vector need not be aligned.
template <typename Lane>
inline Lane load_lane(const float* from) {
  Lane lane;
  std::memcpy(&lane, from, sizeof(lane));
  return lane;
}
template <typename Lane>
inline void store_lane(float* to, Lane lane) {
  std::memcpy(to, &lane, sizeof(lane));
}

inline float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
template <typename Lane>
inline Lane multiply_add(Lane a, float b, Lane c) {
  return a * b + c;  // fused: see CMakeLists.txt
}

// Computes rows y of `units` <= kUnits units from `unit` on, kVectors lanes of outputs from h on.
template <typename Lane, int kUnits, int kVectors>
inline void forward_tile(const TableLayerArgs& args, std::int64_t unit, int units, int h) {
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
inline void add_to_rows(const Lane (&sum)[kRows][kVectors], float* gradient, int width) {
  for (int r = 0; r < kRows; ++r) {
    for (int q = 0; q < kVectors; ++q) {
      float* const to = gradient + r * width + q * kFloats<Lane>;
      store_lane(to, load_lane<Lane>(to) + sum[r][q]);
    }
  }
}

// Gradients that all rows share, from the units of one part and one group of ranges of agents: kTerms of
// them from `term` on. Call it before running_sums().
template <typename Lane, int kTerms, int kVectors>
inline void shared_gradient_tile(const TableLayerArgs& args, int part, int group, int term, int h) {
  const TableShape& s = args.shape;
  const int F = s.table.features, relative = s.table.relative;
  Lane sum[kTerms][kVectors] = {};
  const int end = std::min((group + 1) * TableShape::kGroupRanges, s.ranges());
  for (int range = group * TableShape::kGroupRanges; range < end; ++range) {
    const int first = s.slots_below(range * TableShape::kRangeAgents);
    const int last = s.slots_below((range + 1) * TableShape::kRangeAgents);
    if (first == last) continue;
    Lane of_range[kTerms][kVectors] = {};
    for (std::int64_t unit = part; unit < args.units; unit += s.parts) {
      for (int slot = first; slot < last; ++slot) {
        const float* const g = args.y + (unit * s.rows + slot) * args.y_stride + h;
        const float* const v = args.table + (unit * s.agents + s.agent[slot]) * args.table_stride;
        Lane of_y[kVectors];
        for (int q = 0; q < kVectors; ++q) of_y[q] = load_lane<Lane>(g + q * kFloats<Lane>);
        for (int c = 0; c < kTerms; ++c) {
          const int k = term + c;
          const float factor = k < relative ? -v[k] : k + 1 < s.terms() ? v[F + k - relative] : 1.0f;
          for (int q = 0; q < kVectors; ++q) of_range[c][q] = multiply_add(of_y[q], factor, of_range[c][q]);
        }
      }
    }
    for (int c = 0; c < kTerms; ++c)
      for (int q = 0; q < kVectors; ++q) sum[c][q] += of_range[c][q];
  }
  add_to_rows(sum, args.gradient + (s.shared_row(part, group) + term) * s.width + h, s.width);
}

// Replaces y[slot] by the sum of y[0] .. y[slot], for one unit: the sum of the ranges before its own, plus
// its own range's sum so far.
template <typename Lane, int kVectors>
inline void running_sums(const TableLayerArgs& args, std::int64_t unit, int h) {
  const TableShape& s = args.shape;
  float* y = args.y + unit * s.rows * args.y_stride + h;
  Lane before[kVectors] = {};
  for (int range = 0, slot = 0; range < s.ranges(); ++range) {
    const int end = s.slots_below((range + 1) * TableShape::kRangeAgents);
    Lane sum[kVectors] = {};
    for (; slot < end; ++slot, y += args.y_stride) {
      for (int q = 0; q < kVectors; ++q) {
        sum[q] += load_lane<Lane>(y + q * kFloats<Lane>);
        store_lane(y + q * kFloats<Lane>, before[q] + sum[q]);
      }
    }
    for (int q = 0; q < kVectors; ++q) before[q] += sum[q];
  }
}

// Gradients of W[k, f] for kTerms features from f on, from the units of one part, except the part that is the
// same for all k. Call it after running_sums().
template <typename Lane, int kTerms, int kVectors>
inline void others_gradient_tile(const TableLayerArgs& args, int part, int k, int f, int h) {
  const TableShape& s = args.shape;
  const std::int64_t row = args.table_stride;
  // Rows of agents 0 .. k, which see agent k + 1 in this place; the others see agent k.
  const int below = s.upto[k];
  Lane sum[kTerms][kVectors] = {};
  for (std::int64_t unit = part; unit < args.units; unit += s.parts) {
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
  const std::int64_t row_of_w = part * s.others() + static_cast<std::int64_t>(k) * s.table.features + f;
  add_to_rows(sum, args.gradient + row_of_w * s.width + h, s.width);
}

template <typename LaneType, int kCount>
struct Tile {
  using Lane = LaneType;
  static constexpr int kVectors = kCount;
};
// Calls f(tile, h) for all outputs with the vectors in use; `tile` gives the number of outputs, from h on.
template <typename F>
void for_outputs(int width, const F& f) {
  with_vectors([&](auto bytes) {
    using Narrow = detail::FloatVector<kNarrowVectors>;
    int h = 0;
    if constexpr (bytes == kWideVectors) {
      for (; h + 64 <= width; h += 64) f(Tile<detail::FloatVector<kWideVectors>, 4>{}, h);
    }
    for (; h + 32 <= width; h += 32) f(Tile<Narrow, 4>{}, h);
    for (; h + 8 <= width; h += 8) f(Tile<Narrow, 1>{}, h);
    for (; h < width; ++h) f(Tile<float, 1>{}, h);
  });
}

// Calls f(std::integral_constant<int, n>, first) for consecutive groups of n <= 3 out of `count`.
template <typename F>
void for_groups_of_3(std::int64_t count, F f) {
  std::int64_t first = 0;
  for (; first + 3 <= count; first += 3) f(std::integral_constant<int, 3>{}, first);
  if (count - first == 2) f(std::integral_constant<int, 2>{}, first);
  if (count - first == 1) f(std::integral_constant<int, 1>{}, first);
}

template <typename F>
void for_entries(const TableWeightsArgs& args, std::int64_t rows, F f) {
  parallel_for(rows, 1 + 16384 / args.shape.width, vectorized([&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t r = begin; r < end; ++r)
                   for (int h = 0; h < args.shape.width; ++h) f(args, r, h);
               }));
}

}  // namespace

void table_forward(Queue queue, const TableLayerArgs& args) {
  if (queue.cuda) return cuda::table_forward(queue.stream, args);
  const profile::Scope scope("layer over a table");
  for_outputs(args.shape.width, [&](auto tile, int h) {
    using T = decltype(tile);
    for_groups_of_3(args.units, [&](auto units, std::int64_t unit) {
      forward_tile<typename T::Lane, units(), T::kVectors>(args, unit, units(), h);
    });
  });
}

void table_backward(Queue queue, const TableLayerArgs& args) {
  if (queue.cuda) return cuda::table_backward(queue.stream, args);
  const profile::Scope scope("gradient of the layer over a table");
  const TableShape& shape = args.shape;
  for_outputs(shape.width, [&](auto tile, int h) {
    using T = decltype(tile);
    using Lane = typename T::Lane;
    for (int part = 0; part < shape.parts; ++part) {
      for (int group = 0; group < shape.groups(); ++group) {
        for_groups_of_3(shape.terms(), [&](auto terms, std::int64_t term) {
          shared_gradient_tile<Lane, terms(), T::kVectors>(args, part, group, static_cast<int>(term), h);
        });
      }
    }
    for (std::int64_t unit = 0; unit < args.units; ++unit) running_sums<Lane, T::kVectors>(args, unit, h);
    for (int part = 0; part < shape.parts; ++part) {
      for (int k = 0; k + 1 < shape.agents; ++k) {
        for_groups_of_3(shape.table.features, [&](auto terms, std::int64_t f) {
          others_gradient_tile<Lane, terms(), T::kVectors>(args, part, k, static_cast<int>(f), h);
        });
      }
    }
  });
}

void table_weights(Queue queue, const TableWeightsArgs& args) {
  if (queue.cuda) return cuda::table_weights(queue.stream, args);
  for_entries(args, args.shape.weight_rows(), weight_entry);
}

void table_gradient(Queue queue, const TableWeightsArgs& args) {
  if (queue.cuda) return cuda::table_gradient(queue.stream, args);
  for_entries(args, args.shape.terms(), sum_parts);
  for_entries(args, args.shape.weight_rows(), gradient_entry);
}

}  // namespace wd
