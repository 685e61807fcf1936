// cell.cpp: recurrent cells on the CPU: a step of all sequences after another, whose products are one product
// of matrices.
#include "kernels/cell.h"

#include <algorithm>

#include "kernels/cell_body.h"
#include "kernels/matmul.h"
#include "wd/detail/profile.h"
#include "wd/detail/vectors.h"

namespace wd {
namespace {

// previous = h', products = y.
void put_products(const CellArgs& args, std::int64_t t) {
  const CellShape& s = args.shape;
  const std::int64_t H = s.width, gates = s.gates() * H, row = t * s.sequences;
  for (std::int64_t b = 0; b < s.sequences; ++b) {
    float* const to = args.previous + (row + b) * H;
    if (restarts(args.restarted, row + b)) {
      std::fill_n(to, H, 0.0f);
    } else {
      std::copy_n(h_before(args, t, b), H, to);
    }
  }
  matmul({.m = s.sequences,
          .n = gates,
          .k = H,
          .a = {args.previous + row * H, H},
          .b = {args.weight, gates},
          .c = args.products,
          .c_row = gates,
          .bias = args.bias});
}

template <typename Cell>
void step_row(const CellArgs& args, std::int64_t t, std::int64_t b) {
  const CellRow<Cell> row(args, t, b);
  const float *const h = h_before(args, t, b), *products = nullptr;
  if constexpr (Cell::kKind != CellKind::kMinGru) products = args.products + b * Cell::kGates * row.width;
  float* const output = args.output + (t * args.shape.sequences + b) * row.width;
#pragma GCC ivdep
  for (std::int64_t unit = 0; unit < row.width; ++unit) {
    float y[Cell::kGates] = {};
    if constexpr (Cell::kKind != CellKind::kMinGru)
      for (int gate = 0; gate < Cell::kGates; ++gate) y[gate] = products[gate * row.width + unit];
    output[unit] = row.step(unit, masked(row.mask, h[unit]), y);
  }
}

template <typename Cell>
void back_row(const CellBackwardArgs& args, std::int64_t t, std::int64_t b) {
  const CellRow<Cell> row(args, t, b);
  const std::int64_t at = t * args.shape.sequences + b, next = at + args.shape.sequences;
  const std::uint32_t mask = mask_of(t + 1 == args.shape.steps || restarts(args.restarted, next));
  const float *const output_grad = args.output_grad + at * row.width, *h = nullptr;
  if constexpr (Cell::kKind == CellKind::kGru) h = args.previous + at * row.width;
  float* const state_grad = args.state_grad + b * Cell::kStates * row.width;
#pragma GCC ivdep
  for (std::int64_t unit = 0; unit < row.width; ++unit) {
    float of_state[Cell::kStates], of_y[Cell::kGates], before = 0.0f;
    if constexpr (Cell::kKind == CellKind::kGru) before = h[unit];
    for (int k = 0; k < Cell::kStates; ++k) of_state[k] = masked(mask, state_grad[k * row.width + unit]);
    of_state[0] += output_grad[unit];
    row.back(unit, before, of_state, of_y);
    for (int k = 0; k < Cell::kStates; ++k) state_grad[k * row.width + unit] = of_state[k];
  }
}

// Adds what reaches the state before step t through y.
void add_products(const CellBackwardArgs& args, std::int64_t t) {
  const CellShape& s = args.shape;
  const std::int64_t H = s.width, row = t * s.sequences;
  const auto add = [&](int first, int gates, const float* of_y, std::int64_t of_row) {
    matmul({.m = s.sequences,
            .n = H,
            .k = gates * H,
            .a = {of_y, of_row},
            .b = {args.weight + first * H * H, H},
            .c = args.state_grad,
            .c_row = s.states() * H,
            .add = true});
  };
  const bool gru = s.kind == CellKind::kGru;
  add(0, gru ? 2 : s.gates(), args.rows[row], args.rows.stride);
  if (gru) add(2, 1, args.kept + row * H, H);
}

}  // namespace

void cell_forward(Queue queue, const CellArgs& args) {
  check_cell(args.shape);
  if (queue.cuda) return cuda::cell_forward(queue.stream, args);
  const profile::Scope scope("recurrent cell");
  const CellShape& s = args.shape;
  with_cell(s.kind, [&](auto cell) {
    for (std::int64_t t = 0; t < s.steps; ++t) {
      if (s.has_products()) put_products(args, t);
      with_vectors([&](auto) {
        for (std::int64_t b = 0; b < s.sequences; ++b) step_row<decltype(cell)>(args, t, b);
      });
    }
  });
  if (args.next_state.pointer == nullptr) return;
  for (std::int64_t b = 0; b < s.sequences; ++b)
    for (int unit = 0; unit < s.width; ++unit) put_next_state(args, b, unit);
}

void cell_backward(Queue queue, const CellBackwardArgs& args) {
  check_cell(args.shape);
  if (queue.cuda) return cuda::cell_backward(queue.stream, args);
  const profile::Scope scope("gradient of recurrent cell");
  const CellShape& s = args.shape;
  with_cell(s.kind, [&](auto cell) {
    for (std::int64_t t = s.steps - 1; t >= 0; --t) {
      with_vectors([&](auto) {
        for (std::int64_t b = 0; b < s.sequences; ++b) back_row<decltype(cell)>(args, t, b);
      });
      if (s.has_products() && t > 0) add_products(args, t);
    }
  });
}

void cell_weight(Queue queue, const CellWeightArgs& args) {
  if (queue.cuda) return cuda::cell_weight(queue.stream, args);
  const std::int64_t H = args.shape.width, gates = args.shape.gates() * H;
  for (std::int64_t r = 0; r < gates; ++r)
    for (std::int64_t k = 0; k < H; ++k) args.transposed[k * gates + r] = args.weight[r * H + k];
}

}  // namespace wd
