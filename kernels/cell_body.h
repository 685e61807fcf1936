// cell_body.h: one unit of a recurrent cell in one step of one sequence, the same code on both devices.
#pragma once

#include "kernels/cell.h"
#include "wd/error.h"

namespace wd {

// The logistic function; error below 2e-7. NaN stays NaN.
WD_FN float logistic(float v) { return 0.5f + 0.5f * tanh(0.5f * v); }
WD_FN float logistic_slope(float y) { return y * (1.0f - y); }

// The cells. step() computes the state `after` a step from the one `before`, and back() begins with the
// gradient of the state after the step in `of_state`, and ends with that of the state before, but for what
// reaches that through y. `n` are the numbers of the unit in CellArgs::rows, then that in `kept`, before and
// after each of them.
struct MinGruCell {
  static constexpr CellKind kKind = CellKind::kMinGru;
  static constexpr int kGates = 2, kStates = 1, kNumbers = 2;

  WD_FN static void step(float (&n)[kNumbers], const float (& /*y*/)[kGates], const float (&before)[kStates],
                         float (&after)[kStates]) {
    n[0] = logistic(n[0]);
    n[1] = n[1] - before[0];
    after[0] = before[0] + n[0] * n[1];
  }
  WD_FN static void back(float (&n)[kNumbers], const float (& /*before*/)[kStates],
                         float (&of_state)[kStates]) {
    const float z = n[0], of_h = of_state[0];
    n[0] = of_h * n[1] * logistic_slope(z);
    n[1] = of_h * z;
    of_state[0] = of_h - n[1];
  }
};

struct GruCell {
  static constexpr CellKind kKind = CellKind::kGru;
  static constexpr int kGates = 3, kStates = 1, kNumbers = 4;

  WD_FN static void step(float (&n)[kNumbers], const float (&y)[kGates], const float (&before)[kStates],
                         float (&after)[kStates]) {
    const float r = logistic(n[0] + y[0]), z = logistic(n[1] + y[1]), fresh = tanh(n[2] + r * y[2]);
    n[0] = r;
    n[1] = z;
    n[2] = fresh;
    n[3] = y[2];
    after[0] = fresh + z * (before[0] - fresh);
  }
  WD_FN static void back(float (&n)[kNumbers], const float (&before)[kStates], float (&of_state)[kStates]) {
    const float r = n[0], z = n[1], fresh = n[2], of_h = of_state[0];
    n[2] = of_h * (1.0f - z) * (1.0f - fresh * fresh);
    n[0] = n[2] * n[3] * logistic_slope(r);
    n[1] = of_h * (before[0] - fresh) * logistic_slope(z);
    n[3] = n[2] * r;
    of_state[0] = of_h * z;
  }
};

struct LstmCell {
  static constexpr CellKind kKind = CellKind::kLstm;
  static constexpr int kGates = 4, kStates = 2, kNumbers = 5;

  WD_FN static void step(float (&n)[kNumbers], const float (&y)[kGates], const float (&before)[kStates],
                         float (&after)[kStates]) {
    n[0] = logistic(n[0] + y[0]);
    n[1] = logistic(n[1] + y[1]);
    n[2] = tanh(n[2] + y[2]);
    n[3] = logistic(n[3] + y[3]);
    n[4] = after[1] = n[1] * before[1] + n[0] * n[2];
    after[0] = n[3] * tanh(after[1]);
  }
  WD_FN static void back(float (&n)[kNumbers], const float (&before)[kStates], float (&of_state)[kStates]) {
    const float i = n[0], f = n[1], g = n[2], o = n[3], t = tanh(n[4]), of_h = of_state[0];
    const float of_c = of_state[1] + of_h * o * (1.0f - t * t);
    n[0] = of_c * g * logistic_slope(i);
    n[1] = of_c * before[1] * logistic_slope(f);
    n[2] = of_c * i * (1.0f - g * g);
    n[3] = of_h * t * logistic_slope(o);
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

// 0 at a restart, whatever the number is. `mask` is that of mask_of(), because compilers vectorize no choice
// by a condition that is the same for all numbers.
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
  return t > 0 ? args.output + ((t - 1) * s.sequences + b) * s.width : args.state[b];
}
template <typename Args>
WD_FN const float* c_before(const Args& args, std::int64_t t, std::int64_t b) {
  const CellShape& s = args.shape;
  if (t == 0) return args.state[b] + s.width;
  return args.kept + ((t - 1) * s.sequences + b) * s.width;
}

// Step t of sequence b.
template <typename Cell>
struct CellRow {
  std::int64_t width;
  float *numbers, *kept = nullptr;
  const float* c = nullptr;
  std::uint32_t mask;

  template <typename Args>
  WD_FN CellRow(const Args& args, std::int64_t t, std::int64_t b) : width(args.shape.width) {
    const std::int64_t row = t * args.shape.sequences + b;
    numbers = args.rows[row];
    if constexpr (Cell::kNumbers > Cell::kGates) kept = args.kept + row * width;
    if constexpr (Cell::kStates == 2) c = c_before(args, t, b);
    mask = mask_of(restarts(args.restarted, row));
  }
  // Returns h, from h' and y.
  WD_FN float step(std::int64_t unit, float h, const float (&y)[Cell::kGates]) const {
    float n[Cell::kNumbers], before[Cell::kStates] = {h}, after[Cell::kStates];
    for (int k = 0; k < Cell::kGates; ++k) n[k] = numbers[k * width + unit];
    if constexpr (Cell::kStates == 2) before[1] = masked(mask, c[unit]);
    Cell::step(n, y, before, after);
    for (int k = 0; k < Cell::kGates; ++k) numbers[k * width + unit] = n[k];
    if constexpr (Cell::kNumbers > Cell::kGates) kept[unit] = n[Cell::kGates];
    return after[0];
  }
  // of_state: the gradient of the state after the step, then that of the state before it, without what
  // reaches it through y, whose gradient is of_y. h: h', which only a GRU reads.
  WD_FN void back(std::int64_t unit, float h, float (&of_state)[Cell::kStates],
                  float (&of_y)[Cell::kGates]) const {
    constexpr bool kGru = Cell::kKind == CellKind::kGru;
    float n[Cell::kNumbers], before[Cell::kStates] = {h};
    for (int k = 0; k < Cell::kGates; ++k) n[k] = numbers[k * width + unit];
    if constexpr (Cell::kNumbers > Cell::kGates) n[Cell::kGates] = kept[unit];
    if constexpr (Cell::kStates == 2) before[1] = masked(mask, c[unit]);
    Cell::back(n, before, of_state);
    for (int k = 0; k < Cell::kGates; ++k) of_y[k] = numbers[k * width + unit] = n[k];
    if constexpr (kGru) of_y[2] = kept[unit] = n[3];
  }
};

WD_FN void put_next_state(const CellArgs& args, std::int64_t b, int unit) {
  const CellShape& s = args.shape;
  float* const to = args.next_state[b] + unit;
  to[0] = h_before(args, s.steps, b)[unit];
  if (s.kind == CellKind::kLstm) to[s.width] = c_before(args, s.steps, b)[unit];
}

}  // namespace wd
