// cell.h: recurrent cells over whole sequences, forward and backward, with h' and c' the state of a unit
// before a step and h and c after it. x are products of the cell's input, with biases, which are computed
// before; y are those of all of h', U h' + b. s is the logistic function.
//  MinGRU (Feng et al. 2024, arXiv 2410.01201, section 3.1; no y):
//   z = s(x0), h = (1 - z) h' + z x1
//  GRU (Cho et al. 2014, arXiv 1406.1078, as torch::nn::GRUCell computes it):
//   r = s(x0 + y0), z = s(x1 + y1), n = tanh(x2 + r y2), h = (1 - z) n + z h'
//  LSTM (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000; torch::nn::LSTMCell):
//   i = s(x0 + y0), f = s(x1 + y1), g = tanh(x2 + y2), o = s(x3 + y3), c = f c' + i g, h = o tanh(c)
// U and b are torch's weight_hh and bias_hh.
#pragma once

#include <cstdint>

#include "wd/kernels/rows.h"
#include "wd/math.h"
#include "wd/queue.h"

namespace wd {

enum class CellKind : std::uint8_t { kMinGru, kGru, kLstm };

// Rows are those of T steps of c sequences, with all rows of a step before those of the next step.
struct CellShape {
  CellKind kind = CellKind::kGru;
  int width = 0;                          // H, units
  std::int64_t sequences = 0, steps = 0;  // c, T >= 1

  WD_FN std::int64_t rows() const { return steps * sequences; }
  WD_FN bool has_products() const { return kind != CellKind::kMinGru; }
  WD_FN int gates() const { return 2 + static_cast<int>(kind); }        // x and y of a unit
  WD_FN int states() const { return kind == CellKind::kLstm ? 2 : 1; }  // h, and c behind it
};

// On a GPU, cells with products have at most this many units: their state is in shared memory.
inline constexpr int kMaxCellWidth = 512;

// The numbers of a unit in `rows` are, one after another, H apart, and behind them that in `kept`,
//           before forward  after it           after backward
//  MinGRU   x0, x1          z, x1 - h'         gradients of x0, x1
//  GRU      x0, x1, x2      r, z, n; y2        gradients of x0 and y0, x1 and y1, x2; that of y2
//  LSTM     x0 .. x3        i, f, g, o; c      gradients of x0 .. x3, which are those of y0 .. y3; c
struct CellArgs {
  CellShape shape;
  Rows<float> rows;                         // [T c, gates, H]
  float* kept = nullptr;                    // [T c, H], written; null for MinGRU
  const float* weight = nullptr;            // [H, gates H]: U transposed (cell_weight); null for MinGRU
  const float* bias = nullptr;              // [gates H]: b; null for MinGRU
  Rows<const float> state;                  // [c, states, H], before the first step
  const std::uint8_t* restarted = nullptr;  // [T c]: the state is 0 before this row; null: none is
  float* output = nullptr;                  // [T c, H], written: h
  float* previous = nullptr;                // [T c, H], written: h', 0 at a restart; null for MinGRU
  Rows<float> next_state;                   // [c, states, H], written: the state after the last step; or none
  float* products = nullptr;                // CPU: [c, gates, H], working memory; null for MinGRU
};

// The gradient of U is the product of the gradients of y, transposed, and `previous` over all rows, that of b
// their sum. No gradient passes a restart, or reaches the state before the first step.
struct CellBackwardArgs {
  CellShape shape;
  Rows<float> rows;  // as in forward, and so is the next one
  float* kept = nullptr;
  const float* weight = nullptr;            // [gates H, H]: U; null for MinGRU
  Rows<const float> state;                  // as in forward, and so are the next two
  const std::uint8_t* restarted = nullptr;  // [T c]
  const float* previous = nullptr;          // [T c, H]
  const float* output_grad = nullptr;       // [T c, H]
  float* state_grad = nullptr;              // CPU: [c, states, H], working memory
};

struct CellWeightArgs {
  CellShape shape;
  const float* weight = nullptr;  // [gates H, H]
  float* transposed = nullptr;    // [H, gates H], written
};

// Sums are float32, b and then fused multiply-adds in order of units; in backward what reaches the state by
// other ways, then in order of gates and units: rows have the same bits on the CPU, on a GPU and with any
// vectors. On the CPU all run on the calling thread. They enqueue on CUDA.
WD_DECLARE_KERNEL(cell_forward, CellArgs)
WD_DECLARE_KERNEL(cell_backward, CellBackwardArgs)
WD_DECLARE_KERNEL(cell_weight, CellWeightArgs)  // call it after the weights have changed

}  // namespace wd
