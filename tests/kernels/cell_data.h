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
  std::vector<float> input, weight, bias;  // [T c, gates, H], [gates H, H], [gates H]
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

struct CellResult {
  std::vector<float> output, kept, previous, next_state, input_grad, product_grad;
  bool operator==(const CellResult&) const = default;
};

template <typename Memory>
CellResult run_cell(Memory memory, const CellData& data) {
  const CellShape& s = data.shape;
  const auto rows = static_cast<std::size_t>(s.rows()), width = static_cast<std::size_t>(s.width),
             units = static_cast<std::size_t>(s.sequences) * width, n = rows * width;
  const auto numbers = [&](int each) { return n * static_cast<std::size_t>(each); };
  const bool gru = s.kind == CellKind::kGru;
  const Queue queue = memory.queue();
  const float* const weight = memory.put(data.weight);
  float* transposed = nullptr;
  if (s.has_products()) {
    transposed = memory.template make<float>(data.weight.size());
    cell_weight(queue, {s, weight, transposed});
  }
  CellArgs forward{.shape = s, .input = memory.put(data.input), .weight = transposed};
  forward.bias = memory.put(data.bias);
  forward.state = memory.put(data.state);
  forward.restarted = memory.put(data.restarted);
  forward.output = memory.template make<float>(n);
  forward.kept = memory.template make<float>(numbers(s.kept()));
  forward.previous = s.has_products() ? memory.template make<float>(n) : nullptr;
  forward.next_state = memory.template make<float>(units * s.states());
  cell_forward(queue, forward);

  CellBackwardArgs backward{.shape = s, .weight = weight, .state = forward.state};
  backward.restarted = forward.restarted;
  backward.kept = forward.kept;
  backward.previous = forward.previous;
  backward.output_grad = memory.put(data.output_grad);
  backward.input_grad = memory.template make<float>(numbers(s.gates()));
  backward.product_grad = gru ? memory.template make<float>(numbers(s.gates())) : nullptr;
  backward.state_grad = memory.template make<float>(units * s.states());
  cell_backward(queue, backward);
  return {memory.get(forward.output, n),
          memory.get(forward.kept, numbers(s.kept())),
          memory.get(forward.previous, s.has_products() ? n : 0),
          memory.get(forward.next_state, units * s.states()),
          memory.get(backward.input_grad, numbers(s.gates())),
          memory.get(backward.product_grad, gru ? numbers(s.gates()) : 0)};
}

}  // namespace wd
