// cell_test.cpp: recurrent cells and their gradients, compared with torch's cells in double, stepped by
// autograd.
#include "kernels/cell.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/nn/modules/rnn.h>

#include <limits>

#include "tests/kernels/cell_data.h"
#include "tests/kernels/memory.h"

namespace wd {
namespace {

at::Tensor doubles(const std::vector<float>& values, at::IntArrayRef shape) {
  return at::tensor(values).view(shape).to(at::kDouble);
}

struct Expected {
  at::Tensor output, next_state, input_grad;  // [T, c, H], [c, states H], [T, c, gates H]
  at::Tensor weight_grad, bias_grad;          // of the products; undefined without
};

// `step` computes the next state (h, c) [states of [c, H]] from the products of the input [c, gates H] and
// the state. It differentiates `leaves`.
template <typename Step>
Expected unrolled(const CellData& data, std::vector<at::Tensor> leaves, Step step) {
  const CellShape& s = data.shape;
  const std::int64_t T = s.steps, c = s.sequences, H = s.width;
  const at::Tensor input = doubles(data.input, {T, c, s.gates() * H}).requires_grad_();
  leaves.insert(leaves.begin(), input);
  std::vector<at::Tensor> state = doubles(data.state, {c, s.states() * H}).split(H, 1), outputs;
  for (std::int64_t t = 0; t < T; ++t) {
    if (!data.restarted.empty()) {
      std::vector<float> goes_on;
      for (std::int64_t b = 0; b < c; ++b)
        goes_on.push_back(data.restarted[static_cast<std::size_t>(t * c + b)] == 0 ? 1.0f : 0.0f);
      for (at::Tensor& part : state) part = part * doubles(goes_on, {c, 1});
    }
    state = step(input[t], state);
    outputs.push_back(state[0]);
  }
  Expected expected{at::stack(outputs), at::cat(state, 1)};
  const auto grads = torch::autograd::grad({expected.output}, leaves, {doubles(data.output_grad, {T, c, H})});
  expected.input_grad = grads[0];
  if (grads.size() > 1) {
    expected.weight_grad = grads[1];
    expected.bias_grad = grads[2];
  }
  return expected;
}

// torch's cell with these recurrent weights, whose products of the input are the input.
template <typename TorchCell>
TorchCell cell_of(const CellData& data) {
  const std::int64_t H = data.shape.width, gates = data.shape.gates() * H;
  TorchCell cell(gates, H);
  cell->to(at::kDouble);
  const at::NoGradGuard no_grad;
  cell->weight_ih.copy_(at::eye(gates));
  cell->bias_ih.zero_();
  cell->weight_hh.copy_(doubles(data.weight, {gates, H}));
  cell->bias_hh.copy_(doubles(data.bias, {gates}));
  return cell;
}

Expected by_torch(const CellData& data) {
  at::set_num_threads(1);  // to wake others takes longer than these products
  using States = std::vector<at::Tensor>;
  if (data.shape.kind == CellKind::kGru) {
    auto cell = cell_of<torch::nn::GRUCell>(data);
    return unrolled(data, {cell->weight_hh, cell->bias_hh},
                    [&](const at::Tensor& x, const States& h) { return States{cell(x, h[0])}; });
  }
  if (data.shape.kind == CellKind::kLstm) {
    auto cell = cell_of<torch::nn::LSTMCell>(data);
    return unrolled(data, {cell->weight_hh, cell->bias_hh}, [&](const at::Tensor& x, const States& state) {
      const auto [h, c] = cell(x, std::tuple(state[0], state[1]));
      return States{h, c};
    });
  }
  return unrolled(data, {}, [](const at::Tensor& x, const States& h) {
    const auto parts = x.chunk(2, 1);
    const at::Tensor z = at::sigmoid(parts[0]);
    return States{(1 - z) * h[0] + z * parts[1]};
  });
}

void expect_close(const at::Tensor& found, const at::Tensor& expected, const char* what) {
  const double largest = std::max(expected.abs().max().item<double>(), 1e-2);
  const double off = (found - expected).abs().max().item<double>();
  EXPECT_TRUE(off <= 1e-5 * largest) << what << " is off by " << off << " of " << largest;
}

void expect_torchs(const CellData& data) {
  const CellShape& s = data.shape;
  const std::int64_t T = s.steps, c = s.sequences, H = s.width, gates = s.gates() * H;
  SCOPED_TRACE(testing::Message() << "cell " << static_cast<int>(s.kind) << ": " << T << " steps of " << c
                                  << " sequences, " << H << " units");
  const CellResult found = run_cell(HostMemory(), data);
  const Expected expected = by_torch(data);
  expect_close(doubles(found.output, {T, c, H}), expected.output.detach(), "output");
  expect_close(doubles(found.next_state, {c, s.states() * H}), expected.next_state.detach(), "state");
  expect_close(doubles(found.input_grad, {T, c, gates}), expected.input_grad, "gradient of the input");
  if (!s.has_products()) return;
  const at::Tensor of_y = doubles(found.product_grad, {T * c, gates});
  const at::Tensor previous = doubles(found.previous, {T * c, H});
  expect_close(at::mm(of_y.t(), previous), expected.weight_grad, "gradient of U");
  expect_close(of_y.sum(0), expected.bias_grad, "gradient of b");
}

TEST(Cell, IsThatOfTorchWithItsGradients) {
  Draws draws(5);
  for (const CellKind kind : kCellKinds)
    for (const int width : {1, 3, 16, 64, 70})
      for (const auto& [steps, sequences, restarts] :
           {std::tuple(1, 1, 0), {1, 5, 2}, {2, 20, 2}, {7, 3, 1}, {13, 8, 3}, {40, 1, 6}, {40, 4, 0}})
        expect_torchs(random_cell(draws, {kind, width, sequences, steps}, restarts));
}

// Sequence b restarts in the steps that the bits of b name: in every one, at both ends, one after another.
TEST(Cell, RestartsInAnyStep) {
  Draws draws(6);
  for (const CellKind kind : kCellKinds) {
    CellData data = random_cell(draws, {kind, 16, 16, 4}, 0);
    for (int t = 0; t < 4; ++t)
      for (int b = 0; b < 16; ++b) data.restarted.push_back(static_cast<std::uint8_t>(b >> t & 1));
    expect_torchs(data);
  }
}

// A sequence that restarts does not depend on what was before, not even on numbers that are not finite.
TEST(Cell, ForgetsWhatWasBeforeARestart) {
  constexpr float kBad = std::numeric_limits<float>::quiet_NaN();
  Draws draws(7);
  for (const CellKind kind : kCellKinds) {
    CellData data = random_cell(draws, {kind, 16, 1, 3}, 0);
    data.restarted = {0, 1, 0};
    const CellResult good = run_cell(HostMemory(), data);
    std::fill(data.state.begin(), data.state.end(), kBad);
    const CellResult bad = run_cell(HostMemory(), data);
    const auto from_second = [&](const std::vector<float>& rows) {
      return std::vector<float>(rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 3), rows.end());
    };
    EXPECT_TRUE(std::isnan(bad.output[0]));
    EXPECT_EQ(from_second(bad.output), from_second(good.output));
    EXPECT_EQ(from_second(bad.input_grad), from_second(good.input_grad));
    EXPECT_EQ(bad.next_state, good.next_state);
    // Nor does the first step learn from those behind the restart.
    std::fill(data.output_grad.begin() + 16, data.output_grad.end(), kBad);
    std::fill(data.state.begin(), data.state.end(), 0.5f);
    const std::vector<float> of_input = run_cell(HostMemory(), data).input_grad;
    for (std::size_t i = 0; i < of_input.size() / 3; ++i) ASSERT_TRUE(std::isfinite(of_input[i]));
  }
}

// A sequence's bits depend neither on the other sequences, nor on where it is cut if the state is passed on.
TEST(Cell, HasTheSameBitsInAnyBatchAndInPieces) {
  Draws draws(8);
  for (const CellKind kind : kCellKinds) {
    const int width = 70;
    const CellData data = random_cell(draws, {kind, width, 13, 6}, 4);
    const CellResult all = run_cell(HostMemory(), data);
    CellData part = data;
    part.shape.sequences = 1;
    part.shape.steps = 2;
    const auto piece = [](const auto& rows, std::int64_t first, std::int64_t size, std::int64_t next) {
      std::vector each(rows.begin() + first * size, rows.begin() + (first + 1) * size);
      each.insert(each.end(), rows.begin() + next * size, rows.begin() + (next + 1) * size);
      return each;
    };
    part.state.assign(data.state.begin() + 7 * data.shape.states() * width,
                      data.state.begin() + 8 * data.shape.states() * width);
    for (std::int64_t t = 0; t < 6; t += 2) {
      const std::int64_t first = t * 13 + 7, next = first + 13;
      part.input = piece(data.input, first, data.shape.gates() * width, next);
      part.output_grad = piece(data.output_grad, first, width, next);
      part.restarted = piece(data.restarted, first, 1, next);
      const CellResult alone = run_cell(HostMemory(), part);
      EXPECT_EQ(alone.output, piece(all.output, first, width, next));
      part.state = alone.next_state;
    }
  }
}

}  // namespace
}  // namespace wd
