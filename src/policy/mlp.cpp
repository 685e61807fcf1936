// mlp.cpp: forward and backward passes of a multilayer perceptron through out-variants, so that nothing is allocated.
#include "src/policy/mlp.h"

#include <ATen/ATen.h>

#include "wd/math.h"

namespace wd {

namespace {

constexpr std::int64_t kAlignment = 4;  // floats: every view starts at 16 bytes

std::int64_t aligned(std::int64_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

// Widths of the network from input to output.
std::vector<std::int64_t> widths(const MlpShape& shape) {
  std::vector<std::int64_t> all = {shape.inputs};
  all.insert(all.end(), shape.hidden.begin(), shape.hidden.end());
  all.push_back(shape.outputs);
  return all;
}

at::Tensor top(const at::Tensor& tensor, std::int64_t rows) { return tensor.narrow(0, 0, rows); }

// Whole blocks of rows lie in cache when they come here: on the CPU one loop costs less than torch's way to its own.
template <typename Body>
void each(const at::Tensor& x, Body body) {
  float* const value = x.mutable_data_ptr<float>();
  const std::int64_t n = x.numel();
  for (std::int64_t i = 0; i < n; ++i) value[i] = body(value[i], i);
}

void activate_(Activation activation, at::Tensor& x) {
  if (x.is_cuda()) {
    activation == kRelu ? at::relu_(x) : at::tanh_(x);
  } else if (activation == kRelu) {
    each(x, [](float v, std::int64_t) { return v < 0.0f ? 0.0f : v; });  // NaN stays NaN
  } else {
    each(x, [](float v, std::int64_t) { return wd::tanh(v); });
  }
}

// grad *= derivative of the activation, which both can tell from the activated value.
void activation_backward_(Activation activation, const at::Tensor& activated, at::Tensor& grad) {
  if (grad.is_cuda()) {
    activation == kRelu ? at::threshold_backward_out(grad, grad, activated, 0)
                        : at::tanh_backward_out(grad, grad, activated);
    return;
  }
  const float* const a = activated.const_data_ptr<float>();
  if (activation == kRelu) {
    each(grad, [a](float g, std::int64_t i) { return a[i] <= 0.0f ? 0.0f : g; });
  } else {
    each(grad, [a](float g, std::int64_t i) { return g * (1.0f - a[i] * a[i]); });
  }
}

}  // namespace

std::int64_t MlpShape::num_parameters() const {
  const auto width = widths(*this);
  std::int64_t count = 0;
  for (std::size_t l = 0; l + 1 < width.size(); ++l)
    count += aligned(width[l] * width[l + 1]) + aligned(width[l + 1]);
  return count;
}

std::vector<Layer> MlpShape::bind(const at::Tensor& flat, std::int64_t offset) const {
  const auto width = widths(*this);
  std::vector<Layer> layers;
  for (std::size_t l = 0; l + 1 < width.size(); ++l) {
    const std::int64_t in = width[l], out = width[l + 1];
    Layer layer;
    layer.weight = flat.narrow(0, offset, in * out).view({out, in});
    offset += aligned(in * out);
    layer.bias = flat.narrow(0, offset, out);
    offset += aligned(out);
    layers.push_back(layer);
  }
  return layers;
}

MlpWorkspace::MlpWorkspace(const MlpShape& shape, std::int64_t rows, at::Device device, bool with_gradients) {
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(device);
  for (const int width : shape.hidden) {
    hidden.push_back(at::empty({rows, width}, floats));
    if (with_gradients) hidden_grad.push_back(at::empty({rows, width}, floats));
  }
  output = at::empty({rows, shape.outputs}, floats);
  ones = at::ones({rows}, floats);
}

void forward(const MlpShape& shape, const std::vector<Layer>& layers, const at::Tensor& input,
             MlpWorkspace& workspace) {
  const std::int64_t n = input.size(0);
  at::Tensor x = input;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const bool last = l + 1 == layers.size();
    at::Tensor y = top(last ? workspace.output : workspace.hidden[l], n);
    at::addmm_out(y, layers[l].bias, x, layers[l].weight.t());
    if (!last) activate_(shape.activation, y);
    x = y;
  }
}

void backward(const MlpShape& shape, const std::vector<Layer>& layers, const at::Tensor& input,
              const at::Tensor& output_grad, MlpWorkspace& workspace, std::vector<Layer>& gradients) {
  const std::int64_t n = input.size(0);
  const at::Tensor ones = top(workspace.ones, n);
  at::Tensor grad = output_grad;
  for (std::size_t l = layers.size(); l-- > 0;) {
    const at::Tensor x = l == 0 ? input : top(workspace.hidden[l - 1], n);
    gradients[l].weight.addmm_(grad.t(), x);
    gradients[l].bias.addmv_(grad.t(), ones);
    if (l == 0) break;
    at::Tensor below = top(workspace.hidden_grad[l - 1], n);
    at::mm_out(below, grad, layers[l].weight);
    activation_backward_(shape.activation, x, below);
    grad = below;
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
