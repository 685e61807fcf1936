// cell_data.h: runs recurrent cells forward and backward, on either device.
#pragma once

#include <string>
#include <vector>

#include "kernels/cell.h"
#include "tests/kernels/random_data.h"

namespace wd {

inline constexpr CellKind kCellKinds[] = {CellKind::kMinGru, CellKind::kGru, CellKind::kLstm};

struct CellData {
  CellShape shape;
  std::vector<float> input, weight, bias;  // x [T c, gates, H], U [gates H, H], b [gates H]
  std::vector<float> state;                // [c, states, H]
  std::vector<std::uint8_t> restarted;     // [T c], or none
  std::vector<float> output_grad;          // [T c, H]
};

// One in `restarts` rows restarts; 0: none does.
inline CellData random_cell(Draws& draws, const CellShape& shape, int restarts) {
  const std::int64_t H = shape.width, gates = shape.gates() * H;
  const float scale = 1.0f / std::sqrt(static_cast<float>(H));
  CellData data{shape};
  data.input = draws.uniforms(shape.rows() * gates, -2.0f, 2.0f);
  if (shape.has_products()) {
    data.weight = draws.uniforms(gates * H, -2.0f * scale, 2.0f * scale);
    data.bias = draws.uniforms(gates, -0.5f, 0.5f);
  }
  data.state = draws.uniforms(shape.sequences * shape.states() * H, -1.0f, 1.0f);
  if (restarts > 0)
    for (std::int64_t row = 0; row < shape.rows(); ++row)
      data.restarted.push_back(draws.one_in(restarts) ? 1 : 0);
  data.output_grad = draws.uniforms(shape.rows() * H, -1.0f, 1.0f);
  return data;
}

// Gradients of x and y: [T c, gates, H].
struct CellResult {
  std::vector<float> output, previous, next_state, kept, input_grad, product_grad;
  bool operator==(const CellResult&) const = default;
};

template <typename Memory>
CellResult run_cell(Memory memory, const CellData& data) {
  const CellShape& s = data.shape;
  const auto rows = static_cast<std::size_t>(s.rows()), width = static_cast<std::size_t>(s.width),
             units = static_cast<std::size_t>(s.sequences) * width, n = rows * width,
             gates = static_cast<std::size_t>(s.gates()) * width, row = gates + 3;
  const Queue queue = memory.queue();
  std::vector<float> filled(rows * row, 77.0f);
  for (std::size_t k = 0; k < rows; ++k)
    std::copy_n(data.input.begin() + static_cast<std::ptrdiff_t>(k * gates), gates,
                filled.begin() + static_cast<std::ptrdiff_t>(k * row));
  CellArgs forward{.shape = s, .rows = {memory.put(filled), static_cast<std::int64_t>(row)}};
  CellBackwardArgs backward{.shape = s, .rows = forward.rows, .weight = memory.put(data.weight)};
  if (s.has_products()) {
    forward.kept = backward.kept = memory.template make<float>(n);
    float* const transposed = memory.template make<float>(data.weight.size());
    cell_weight(queue, {s, backward.weight, transposed});
    forward.weight = transposed;
    forward.bias = memory.put(data.bias);
    forward.previous = memory.template make<float>(n);
    forward.products = memory.template make<float>(static_cast<std::size_t>(s.sequences) * gates);
  }
  forward.state = {memory.put(data.state), s.states() * s.width};
  forward.restarted = memory.put(data.restarted);
  forward.output = memory.template make<float>(n);
  forward.next_state = {memory.template make<float>(units * static_cast<std::size_t>(s.states())),
                        s.states() * s.width};
  cell_forward(queue, forward);
  CellResult result{memory.get(forward.output, n), memory.get(forward.previous, s.has_products() ? n : 0),
                    memory.get(forward.next_state.pointer, units * static_cast<std::size_t>(s.states())),
                    memory.get(forward.rows.pointer, rows * row)};

  backward.state = forward.state;
  backward.restarted = forward.restarted;
  backward.previous = forward.previous;
  backward.output_grad = memory.put(data.output_grad);
  backward.state_grad = memory.template make<float>(units * static_cast<std::size_t>(s.states()));
  cell_backward(queue, backward);
  const std::vector<float> found = memory.get(backward.rows.pointer, rows * row),
                           kept = memory.get(backward.kept, s.has_products() ? n : 0);
  for (std::size_t k = 0; k < rows; ++k) {
    const auto from = found.begin() + static_cast<std::ptrdiff_t>(k * row);
    EXPECT_EQ(from[static_cast<std::ptrdiff_t>(gates)], 77.0f) << "behind row " << k;
    result.product_grad.insert(result.product_grad.end(), from, from + static_cast<std::ptrdiff_t>(gates));
    result.input_grad.insert(result.input_grad.end(), from, from + static_cast<std::ptrdiff_t>(gates));
    if (s.kind == CellKind::kGru)
      std::copy_n(kept.begin() + static_cast<std::ptrdiff_t>(k * width), width,
                  result.product_grad.end() - static_cast<std::ptrdiff_t>(width));
  }
  return result;
}

}  // namespace wd
