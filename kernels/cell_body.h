// cell_body.h: one unit of a recurrent cell in one step of one sequence, the same code on both devices.
#pragma once

#include "kernels/cell.h"
#include "wd/error.h"

namespace wd {

// The logistic function; error below 2e-7. NaN stays NaN.
WD_FN float logistic(float v) { return 0.5f + 0.5f * tanh(0.5f * v); }
WD_FN float logistic_slope(float y) { return y * (1.0f - y); }

// The cells. step() computes the state `after` a step from the one `before`, and what it keeps. back() begins
// with the gradient of the state after the step in `of_state`, and writes those of x, of y, and of the state
// before, but for what reaches that through y.
struct MinGruCell {
  static constexpr CellKind kKind = CellKind::kMinGru;
  static constexpr int kGates = 2, kStates = 1, kKept = 2;

  WD_FN static void step(const float (&x)[kGates], const float (& /*y*/)[kGates],
                         const float (&before)[kStates], float (&after)[kStates], float (&kept)[kKept]) {
    kept[0] = logistic(x[0]);
    kept[1] = x[1] - before[0];
    after[0] = before[0] + kept[0] * kept[1];
  }
  WD_FN static void back(const float (&kept)[kKept], const float (& /*before*/)[kStates],
                         float (&of_state)[kStates], float (&of_x)[kGates], float (& /*of_y*/)[kGates]) {
    of_x[0] = of_state[0] * kept[1] * logistic_slope(kept[0]);
    of_x[1] = of_state[0] * kept[0];
    of_state[0] -= of_x[1];
  }
};

struct GruCell {
  static constexpr CellKind kKind = CellKind::kGru;
  static constexpr int kGates = 3, kStates = 1, kKept = 4;

  WD_FN static void step(const float (&x)[kGates], const float (&y)[kGates], const float (&before)[kStates],
                         float (&after)[kStates], float (&kept)[kKept]) {
    const float r = logistic(x[0] + y[0]), z = logistic(x[1] + y[1]), n = tanh(x[2] + r * y[2]);
    after[0] = n + z * (before[0] - n);
    kept[0] = r;
    kept[1] = z;
    kept[2] = n;
    kept[3] = y[2];
  }
  WD_FN static void back(const float (&kept)[kKept], const float (&before)[kStates],
                         float (&of_state)[kStates], float (&of_x)[kGates], float (&of_y)[kGates]) {
    const float r = kept[0], z = kept[1], n = kept[2];
    of_x[2] = of_state[0] * (1.0f - z) * (1.0f - n * n);
    of_x[1] = of_state[0] * (before[0] - n) * logistic_slope(z);
    of_x[0] = of_x[2] * kept[3] * logistic_slope(r);
    of_y[0] = of_x[0];
    of_y[1] = of_x[1];
    of_y[2] = of_x[2] * r;
    of_state[0] *= z;
  }
};

struct LstmCell {
  static constexpr CellKind kKind = CellKind::kLstm;
  static constexpr int kGates = 4, kStates = 2, kKept = 5;

  WD_FN static void step(const float (&x)[kGates], const float (&y)[kGates], const float (&before)[kStates],
                         float (&after)[kStates], float (&kept)[kKept]) {
    const float i = logistic(x[0] + y[0]), f = logistic(x[1] + y[1]), g = tanh(x[2] + y[2]),
                o = logistic(x[3] + y[3]);
    after[1] = f * before[1] + i * g;
    after[0] = o * tanh(after[1]);
    kept[0] = i;
    kept[1] = f;
    kept[2] = g;
    kept[3] = o;
    kept[4] = after[1];
  }
  WD_FN static void back(const float (&kept)[kKept], const float (&before)[kStates],
                         float (&of_state)[kStates], float (&of_x)[kGates], float (&of_y)[kGates]) {
    const float i = kept[0], f = kept[1], g = kept[2], o = kept[3], t = tanh(kept[4]);
    const float of_c = of_state[1] + of_state[0] * o * (1.0f - t * t);
    of_x[0] = of_c * g * logistic_slope(i);
    of_x[1] = of_c * before[1] * logistic_slope(f);
    of_x[2] = of_c * i * (1.0f - g * g);
    of_x[3] = of_state[0] * t * logistic_slope(o);
    for (int gate = 0; gate < kGates; ++gate) of_y[gate] = of_x[gate];
    of_state[0] = 0.0f;
    of_state[1] = of_c * f;
  }
};

// Calls f(cell) with the cell of this kind.
template <typename F>
void with_cell(CellKind kind, F f) {
  if (kind == CellKind::kMinGru) return f(MinGruCell());
  kind == CellKind::kGru ? f(GruCell()) : f(LstmCell());
}

inline void check_cell(const CellShape& shape) {
  WD_CHECK(shape.width > 0 && shape.steps > 0 && shape.sequences >= 0, "recurrent cell: ", shape.steps,
           " steps of ", shape.sequences, " sequences, ", shape.width, " units");
}

// 0 at a restart, whatever the number is. `mask` is that of mask_of(), because compilers vectorize no choice by
// a condition that is the same for all numbers.
WD_FN float masked(std::uint32_t mask, float number) {
  return detail::float_of(detail::bits_of(number) & mask);
}
WD_FN std::uint32_t mask_of(bool restarts) { return restarts ? 0u : 0xffffffffu; }
WD_FN bool restarts(const std::uint8_t* restarted, std::int64_t row) {
  return restarted != nullptr && restarted[row] != 0;
}

// [width]: the h that step t of sequence b begins with, unless it restarts.
WD_FN const float* h_before(const CellArgs& args, std::int64_t t, std::int64_t b) {
  const CellShape& s = args.shape;
  return t > 0 ? args.output + ((t - 1) * s.sequences + b) * s.width : args.state + b * s.states() * s.width;
}
// The c, which is the last of the numbers that a step keeps.
template <typename Args>
WD_FN const float* c_before(const Args& args, std::int64_t t, std::int64_t b) {
  const CellShape& s = args.shape;
  if (t == 0) return args.state + (2 * b + 1) * s.width;
  return args.kept + (((t - 1) * s.sequences + b + 1) * LstmCell::kKept - 1) * s.width;
}

// Step t of sequence b, forward.
template <typename Cell>
struct CellRow {
  std::int64_t width;
  const float *x, *c = nullptr;
  float *kept, *output;
  std::uint32_t mask;

  WD_FN CellRow(const CellArgs& args, std::int64_t t, std::int64_t b) : width(args.shape.width) {
    const std::int64_t row = t * args.shape.sequences + b;
    x = args.input + row * Cell::kGates * width;
    if constexpr (Cell::kStates == 2) c = c_before(args, t, b);
    kept = args.kept + row * Cell::kKept * width;
    output = args.output + row * width;
    mask = mask_of(restarts(args.restarted, row));
  }
  // Writes what the unit keeps, and its h, from h' and y. Returns h.
  WD_FN float step(std::int64_t unit, float h, const float (&y)[Cell::kGates]) const {
    float in[Cell::kGates], before[Cell::kStates] = {h}, after[Cell::kStates], keeps[Cell::kKept];
    for (int gate = 0; gate < Cell::kGates; ++gate) in[gate] = x[gate * width + unit];
    if constexpr (Cell::kStates == 2) before[1] = masked(mask, c[unit]);
    Cell::step(in, y, before, after, keeps);
    for (int k = 0; k < Cell::kKept; ++k) kept[k * width + unit] = keeps[k];
    return output[unit] = after[0];
  }
};

// Step t of sequence b, backward.
template <typename Cell>
struct CellRowBackward {
  std::int64_t width;
  const float *kept, *h = nullptr, *c = nullptr, *output_grad;
  float *input_grad, *product_grad = nullptr;
  std::uint32_t mask;

  WD_FN CellRowBackward(const CellBackwardArgs& args, std::int64_t t, std::int64_t b)
      : width(args.shape.width) {
    const std::int64_t row = t * args.shape.sequences + b;
    kept = args.kept + row * Cell::kKept * width;
    if constexpr (Cell::kKind == CellKind::kGru) {
      h = args.previous + row * width;
      product_grad = args.product_grad + row * Cell::kGates * width;
    }
    if constexpr (Cell::kStates == 2) c = c_before(args, t, b);
    output_grad = args.output_grad + row * width;
    input_grad = args.input_grad + row * Cell::kGates * width;
    mask = mask_of(restarts(args.restarted, row));
  }
  // of_state: the gradient of the state after the step that later steps give, then that of the state before
  // it, without what reaches it through y.
  WD_FN void back(std::int64_t unit, float (&of_state)[Cell::kStates], float (&of_y)[Cell::kGates]) const {
    float keeps[Cell::kKept], before[Cell::kStates] = {}, of_x[Cell::kGates];
    for (int k = 0; k < Cell::kKept; ++k) keeps[k] = kept[k * width + unit];
    if constexpr (Cell::kKind == CellKind::kGru) before[0] = h[unit];
    if constexpr (Cell::kStates == 2) before[1] = masked(mask, c[unit]);
    of_state[0] += output_grad[unit];
    Cell::back(keeps, before, of_state, of_x, of_y);
    for (int gate = 0; gate < Cell::kGates; ++gate) {
      input_grad[gate * width + unit] = of_x[gate];
      if constexpr (Cell::kKind == CellKind::kGru) product_grad[gate * width + unit] = of_y[gate];
    }
  }
};

WD_FN void put_next_state(const CellArgs& args, std::int64_t b, int unit) {
  const CellShape& s = args.shape;
  float* const to = args.next_state + b * s.states() * s.width + unit;
  to[0] = h_before(args, s.steps, b)[unit];
  if (s.kind == CellKind::kLstm) to[s.width] = c_before(args, s.steps, b)[unit];
}

}  // namespace wd
