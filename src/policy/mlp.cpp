// mlp.cpp: forward and backward passes of a multilayer perceptron on the CPU, into memory that is there already.
#include "src/policy/mlp.h"

#include <ATen/ATen.h>

#include "src/policy/mlp_cpu.h"
#include "src/policy/table_layer.h"
#include "wd/profile.h"

namespace wd {

namespace {

std::int64_t aligned(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

// Entries that make 16 bytes: every view starts at a multiple.
std::int64_t alignment(Precision precision) { return precision == kBf16 ? 8 : 4; }

// Widths of the network from input to output.
std::vector<std::int64_t> widths(const MlpShape& shape) {
  std::vector<std::int64_t> all = {shape.inputs};
  all.insert(all.end(), shape.hidden.begin(), shape.hidden.end());
  all.push_back(shape.outputs);
  return all;
}

at::Tensor top(const at::Tensor& tensor, std::int64_t rows) { return tensor.narrow(0, 0, rows); }

// grad *= derivative of the activation, which can be told from the activated value.
void activate_backward(Activation activation, const float* activated, float* grad, std::int64_t n) {
  if (activation == kRelu) {
    each(grad, n, [=](float g, std::int64_t i) { return activated[i] <= 0.0f ? 0.0f : g; });
  } else {
    each(grad, n, [=](float g, std::int64_t i) { return g * (1.0f - activated[i] * activated[i]); });
  }
}

// sum[j] += x[i, j] over n rows, in order.
void add_columns(const float* x, std::int64_t n, std::int64_t columns, float* sum) {
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < columns; ++j) sum[j] += x[i * columns + j];
}

}  // namespace

std::int64_t MlpShape::padded(std::int64_t columns) const {
  return precision == kFp32 ? columns : aligned(columns, alignment(precision));
}

std::int64_t MlpShape::num_parameters() const {
  const auto width = widths(*this);
  const std::int64_t unit = alignment(precision);
  std::int64_t count = 0;
  for (std::size_t l = 0; l + 1 < width.size(); ++l)
    count += aligned(padded(width[l]) * width[l + 1], unit) + aligned(width[l + 1], unit);
  return count;
}

std::vector<Layer> MlpShape::bind(const at::Tensor& flat, std::int64_t offset) const {
  const auto width = widths(*this);
  const std::int64_t unit = alignment(precision);
  std::vector<Layer> layers;
  for (std::size_t l = 0; l + 1 < width.size(); ++l) {
    const std::int64_t in = width[l], row = padded(in), out = width[l + 1];
    Layer layer;
    layer.weight = flat.narrow(0, offset, row * out).view({out, row}).narrow(1, 0, in);
    offset += aligned(row * out, unit);
    layer.bias = flat.narrow(0, offset, out);
    offset += aligned(out, unit);
    layers.push_back(layer);
  }
  return layers;
}

MlpWorkspace::MlpWorkspace(const MlpShape& shape, std::int64_t rows, at::Device device, bool with_gradients) {
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(device);
  const bool cuda = device.is_cuda(), rounded = shape.precision == kBf16;
  const auto halves = cuda && rounded ? floats.dtype(at::kBFloat16) : floats;
  for (std::size_t l = 0; l < shape.hidden.size(); ++l) {
    const bool last = l + 1 == shape.hidden.size();
    const std::int64_t width = cuda ? shape.padded(shape.hidden[l]) : shape.hidden[l];
    // Padding stays 0, and rows that are never written meet a gradient of 0, not NaN.
    hidden.push_back(at::zeros({rows, width}, last ? floats : halves));
    if (with_gradients) hidden_grad.push_back(at::zeros({rows, width}, halves));
    if (with_gradients && last && cuda && rounded) last_grad = at::zeros({rows, width}, floats);
  }
  if (rounded && (!cuda || shape.hidden.empty()))
    input = at::zeros({rows, shape.padded(shape.inputs)}, floats);
  output = at::zeros({rows, shape.outputs}, floats);
  if (with_gradients) ones = at::ones({rows}, floats);
}

MlpWorkspace MlpWorkspace::rows(std::int64_t first, std::int64_t n, const MlpWorkspace& lane) const {
  MlpWorkspace view = lane;
  if (input.defined()) view.input = input.narrow(0, first, n);
  for (std::size_t l = 0; l < hidden.size(); ++l) view.hidden[l] = hidden[l].narrow(0, first, n);
  view.output = output.narrow(0, first, n);
  return view;
}

std::int64_t MlpInput::rows() const {
  return first != nullptr ? first->rows_of(observation) : observation.size(0);
}

void forward(const MlpShape& shape, const std::vector<Layer>& layers, const MlpInput& input,
             MlpWorkspace& workspace) {
  const profile::Scope scope("rest of the forward pass");
  const std::int64_t n = input.rows();
  ConstMatrix x = matrix(input.observation);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const bool last = l + 1 == layers.size();
    const std::int64_t in = layers[l].weight.size(1), out = layers[l].weight.size(0);
    at::Tensor& rows = last ? workspace.output : workspace.hidden[l];
    auto* const y = rows.mutable_data_ptr<float>();
    if (l == 0 && input.first != nullptr) {
      input.first->forward(input.observation, rows, false);
    } else {
      matmul({.m = n,
              .n = out,
              .k = in,
              .a = x,
              .b = matrix(layers[l].weight).transposed(),
              .c = y,
              .c_row = out,
              .bias = layers[l].bias.const_data_ptr<float>()});
    }
    if (!last) activate(shape.activation, y, n * out);
    x = {y, out, 1};
  }
}

void backward(const MlpShape& shape, const std::vector<Layer>& layers, const MlpInput& input,
              const at::Tensor& output_grad, MlpWorkspace& workspace, MlpGradients& gradients) {
  const profile::Scope scope("rest of the backward pass");
  const std::int64_t n = input.rows();
  at::Tensor of_y = output_grad;
  for (std::size_t l = layers.size(); l-- > 0;) {
    if (l == 0 && input.first != nullptr)
      return input.first->backward(input.observation, of_y, gradients.first);
    const auto* const grad = of_y.const_data_ptr<float>();
    const std::int64_t in = layers[l].weight.size(1), out = layers[l].weight.size(0);
    const ConstMatrix x = matrix(l == 0 ? input.observation : workspace.hidden[l - 1]);
    matmul({.m = out,
            .n = in,
            .k = n,
            .a = ConstMatrix{grad, out, 1}.transposed(),
            .b = x,
            .c = gradients.layers[l].weight.mutable_data_ptr<float>(),
            .c_row = in,
            .add = true});
    add_columns(grad, n, out, gradients.layers[l].bias.mutable_data_ptr<float>());
    if (l == 0) break;
    auto* const below = workspace.hidden_grad[l - 1].mutable_data_ptr<float>();
    matmul({.m = n,
            .n = in,
            .k = out,
            .a = {grad, out, 1},
            .b = matrix(layers[l].weight),
            .c = below,
            .c_row = in});
    activate_backward(shape.activation, x.data, below, n * in);
    of_y = workspace.hidden_grad[l - 1];
  }
}

void add_columns(const at::Tensor& x, const MlpWorkspace& workspace, at::Tensor& sum) {
  if (x.is_cuda()) {
    sum.addmv_(x.t(), top(workspace.ones, x.size(0)));
  } else {
    add_columns(x.const_data_ptr<float>(), x.size(0), x.size(1), sum.mutable_data_ptr<float>());
  }
}

namespace {

// Rows (or columns, where there are more rows) orthonormal, times gain (Saxe et al. 2014).
at::Tensor orthogonal(std::int64_t out, std::int64_t in, double gain, const at::Generator& generator) {
  const at::Tensor normal =
      at::randn({std::max(out, in), std::min(out, in)}, generator, at::TensorOptions().dtype(at::kFloat));
  const auto [q, r] = at::linalg_qr(normal);
  const at::Tensor unique = q * r.diagonal().sign();  // the sign makes the decomposition unique
  return (out < in ? unique.t() : unique) * gain;
}

}  // namespace

void initialize(const MlpShape& shape, std::vector<Layer>& layers, InitMethod method, double gain,
                std::uint64_t seed) {
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const double hidden_gain = shape.activation == kRelu ? std::sqrt(2.0) : 5.0 / 3.0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const std::int64_t out = layers[l].weight.size(0), in = layers[l].weight.size(1);
    const auto uniform = [&](at::IntArrayRef sizes, double bound) {
      return (at::rand(sizes, generator, at::TensorOptions().dtype(at::kFloat)) * 2 - 1) * bound;
    };
    layers[l].bias.zero_();
    if (method == kOrthogonal) {
      layers[l].weight.copy_(orthogonal(out, in, l + 1 == layers.size() ? gain : hidden_gain, generator));
    } else if (method == kXavier) {
      layers[l].weight.copy_(uniform({out, in}, std::sqrt(6.0 / static_cast<double>(in + out))));
    } else {
      const double bound = 1.0 / std::sqrt(static_cast<double>(in));
      layers[l].weight.copy_(uniform({out, in}, bound));
      layers[l].bias.copy_(uniform({out}, bound));
    }
  }
}

}  // namespace wd
