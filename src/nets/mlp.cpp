// mlp.cpp: the common part of the perceptrons of all devices and precisions: shapes, memory, initial weights.
#include "src/nets/mlp.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/layer_norm.h"
#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "wd/detail/vectors.h"
#include "wd/error.h"

namespace wd {

namespace {

std::int64_t aligned(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

// Number of entries in 16 bytes: every view starts at a multiple of it.
std::int64_t alignment(Precision precision) { return precision == kBf16 ? 8 : 4; }

// Floating-point operations per row: 2 * inputs * outputs, summed over layers from `first` on.
double products(const std::vector<std::int64_t>& widths, std::size_t first) {
  double flop = 0.0;
  for (std::size_t l = first; l + 1 < widths.size(); ++l)
    flop += 2.0 * static_cast<double>(widths[l]) * static_cast<double>(widths[l + 1]);
  return flop;
}

NormMatrix matrix_of(const at::Tensor& x) {
  if (x.scalar_type() == at::kFloat) return {.floats = x.mutable_data_ptr<float>()};
  return {.halves = static_cast<std::uint16_t*>(x.mutable_data_ptr())};
}

}  // namespace

std::vector<std::int64_t> MlpShape::widths() const {
  std::vector<std::int64_t> all = {inputs};
  all.insert(all.end(), hidden.begin(), hidden.end());
  all.push_back(outputs);
  return all;
}

std::int64_t MlpShape::padded(std::int64_t columns) const {
  return precision == kFp32 ? columns : aligned(columns, alignment(precision));
}

std::int64_t MlpShape::num_parameters() const {
  const auto width = widths();
  const std::int64_t unit = alignment(precision);
  std::int64_t count = 0;
  for (std::size_t l = 0; l + 1 < width.size(); ++l)
    count += aligned(padded(width[l]) * width[l + 1], unit) + aligned(width[l + 1], unit);
  if (layer_norm)
    for (const int out : hidden) count += 2 * aligned(out, unit);
  return count;
}

std::vector<Layer> MlpShape::bind(const at::Tensor& flat) const {
  const auto width = widths();
  const std::int64_t unit = alignment(precision);
  std::int64_t offset = 0;
  std::vector<Layer> layers;
  const auto next = [&](std::int64_t n) {
    const at::Tensor view = flat.narrow(0, offset, n);
    offset += aligned(n, unit);
    return view;
  };
  for (std::size_t l = 0; l + 1 < width.size(); ++l) {
    const std::int64_t in = width[l], row = padded(in), out = width[l + 1];
    Layer layer;
    layer.weight = next(row * out).view({out, row}).narrow(1, 0, in);
    layer.bias = next(out);
    if (layer_norm && l < hidden.size()) {
      layer.scale = next(out);
      layer.shift = next(out);
    }
    layers.push_back(layer);
  }
  return layers;
}

Mlp::Mlp(MlpShape shape, const PolicyLayout& layout, Device device)
    : shape_(std::move(shape)), device_(device), agents_(layout.num_agents) {
  if (layout.as_table()) first_ = std::make_unique<TableLayer>(layout, shape_.widths()[1], device);
}

void Mlp::bind(const at::Tensor& parameters, const at::Tensor& shadow) {
  layers_ = shape_.bind(parameters);
  if (shadow.defined()) shadow_ = shape_.bind(shadow);
  if (first_) first_->bind(layers_[0]);
}

void Mlp::parameters_changed() {
  if (first_) first_->refresh();
}

void Mlp::initialize(const at::Tensor& flat, InitMethod method, double gain, std::uint64_t seed) const {
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const double hidden_gain = shape_.activation == kRelu ? std::sqrt(2.0) : 5.0 / 3.0;
  const std::vector<Layer> layers = shape_.bind(flat);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    initialize_layer(layers[l], method, l + 1 == layers.size() ? gain : hidden_gain, generator);
    if (!layers[l].scale.defined()) continue;
    layers[l].scale.fill_(1);
    layers[l].shift.zero_();
  }
}

void Mlp::scale_output(const at::Tensor& flat, int output, double factor) const {
  shape_.bind(flat).back().weight[output].mul_(factor);
}

std::vector<NamedTensor> Mlp::hidden_parameters() const {
  std::vector<NamedTensor> named;
  for (std::size_t l = 0; l + 1 < layers_.size(); ++l) {
    named.push_back({concat(l, ".weight"), layers_[l].weight});
    named.push_back({concat(l, ".bias"), layers_[l].bias});
    if (!shape_.layer_norm) continue;
    named.push_back({concat(l, ".norm.weight"), layers_[l].scale});
    named.push_back({concat(l, ".norm.bias"), layers_[l].shift});
  }
  return named;
}

std::unique_ptr<Network::Workspace> Mlp::make_workspace(std::int64_t rows, bool with_gradients) const {
  auto memory = std::make_unique<Memory>();
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(torch_device(device_));
  const bool cuda = device_.is_cuda(), rounded = shape_.precision == kBf16;
  const auto halves = cuda && rounded ? floats.dtype(at::kBFloat16) : floats;
  for (std::size_t l = 0; l < shape_.hidden.size(); ++l) {
    const bool last = l + 1 == shape_.hidden.size();
    const std::int64_t width = cuda ? shape_.padded(shape_.hidden[l]) : shape_.hidden[l];
    // Padding stays 0. Rows that are never written hold 0, because NaN times a gradient of 0 would be NaN.
    memory->hidden.push_back(at::zeros({rows, width}, last ? floats : halves));
    if (with_gradients) memory->hidden_grad.push_back(at::zeros({rows, width}, halves));
    if (with_gradients && last && cuda && rounded) memory->last_grad = at::zeros({rows, width}, floats);
    if (!shape_.layer_norm) continue;
    memory->normalized.push_back(at::zeros({rows, width}, floats));
    memory->inverse_std.push_back(at::zeros({rows}, floats));
  }
  if (with_gradients && shape_.layer_norm && cuda && !shape_.hidden.empty()) {
    const int widest = *std::max_element(shape_.hidden.begin(), shape_.hidden.end());
    memory->norm_parts = at::empty({kNormParts, 2, widest}, floats);
  }
  if (reads_tables() && cuda && rounded && !shape_.hidden.empty())
    memory->first = at::zeros({rows, shape_.hidden[0]}, floats);
  if (rounded && !reads_tables() && (!cuda || shape_.hidden.empty()))
    memory->input = at::zeros({rows, shape_.padded(shape_.inputs)}, floats);
  memory->output = make_output(rows, shape_.outputs, floats);
  return memory;
}

std::unique_ptr<Network::Workspace> Mlp::Memory::view(std::int64_t begin, std::int64_t n,
                                                      const Workspace& scratch) const {
  auto rows = std::make_unique<Memory>(static_cast<const Memory&>(scratch));
  if (input.defined()) rows->input = input.narrow(0, begin, n);
  for (std::size_t l = 0; l < hidden.size(); ++l) rows->hidden[l] = hidden[l].narrow(0, begin, n);
  for (std::size_t l = 0; l < normalized.size(); ++l) {
    rows->normalized[l] = normalized[l].narrow(0, begin, n);
    rows->inverse_std[l] = inverse_std[l].narrow(0, begin, n);
  }
  rows->output = output.narrow(0, begin, n);
  return rows;
}

std::unique_ptr<Network::Gradient> Mlp::make_gradient(const at::Tensor& flat) const {
  auto gradient = std::make_unique<LayerGradients>();
  gradient->flat = flat;
  gradient->layers = shape_.bind(flat);
  if (first_) gradient->derived = first_->make_gradient();
  return gradient;
}

void Mlp::forward(const NetworkInput& input, Workspace& workspace) const {
  run_forward(input.observation, static_cast<Memory&>(workspace));
}

void Mlp::backward(const NetworkInput& input, const at::Tensor& output_grad, Workspace& workspace,
                   Gradient& gradient) const {
  run_backward(input.observation, output_grad, static_cast<Memory&>(workspace),
               static_cast<LayerGradients&>(gradient));
}

void Mlp::finish_gradient(const at::Tensor& derived, const at::Tensor& flat) const {
  first_->write_gradient(derived, shape_.bind(flat)[0]);
}

double Mlp::forward_flop() const {
  const auto widths = shape_.widths();
  return reads_tables() ? first_->forward_flop() + agents_ * products(widths, 1)
                        : agents_ * products(widths, 0);
}

// Twice the products of the forward pass, except that the gradient of the network's own input is not needed.
double Mlp::backward_flop() const {
  const auto widths = shape_.widths();
  const double first = agents_ * (products(widths, 0) - products(widths, 1));
  return 2.0 * agents_ * products(widths, 1) + (reads_tables() ? first_->backward_flop() : first);
}

std::int64_t Mlp::activation_size() const {
  const std::int64_t hidden = std::accumulate(shape_.hidden.begin(), shape_.hidden.end(), std::int64_t{0});
  const auto layers = static_cast<std::int64_t>(shape_.hidden.size());
  return shape_.outputs + hidden + (shape_.layer_norm ? hidden + layers : 0);
}

void Mlp::normalize(std::size_t l, std::int64_t n, Memory& memory) const {
  const Layer& layer = layers_[l];
  LayerNormArgs args;
  args.rows = n;
  args.width = static_cast<int>(layer.scale.size(0));
  args.stride = memory.normalized[l].stride(0);
  args.scale = layer.scale.const_data_ptr<float>();
  args.shift = layer.shift.const_data_ptr<float>();
  args.normalized = memory.normalized[l].mutable_data_ptr<float>();
  args.inverse_std = memory.inverse_std[l].mutable_data_ptr<float>();
  args.y = matrix_of(memory.hidden[l]);
  layer_norm(current_queue(device_), args);
}

void Mlp::normalize_backward(std::size_t l, const at::Tensor& grad, const Memory& memory,
                             Layer& gradient) const {
  LayerNormBackwardArgs args;
  args.rows = grad.size(0);
  args.width = static_cast<int>(layers_[l].scale.size(0));
  args.stride = memory.normalized[l].stride(0);
  args.scale = layers_[l].scale.const_data_ptr<float>();
  args.normalized = memory.normalized[l].const_data_ptr<float>();
  args.inverse_std = memory.inverse_std[l].const_data_ptr<float>();
  args.grad = matrix_of(grad);
  args.scale_grad = gradient.scale.mutable_data_ptr<float>();
  args.shift_grad = gradient.shift.mutable_data_ptr<float>();
  if (memory.norm_parts.defined()) args.parts = memory.norm_parts.mutable_data_ptr<float>();
  layer_norm_backward(current_queue(device_), args);
}

void add_columns(const float* x, std::int64_t n, std::int64_t columns, float* sum) {
  with_vectors([&](auto) {
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < columns; ++j) sum[j] += x[i * columns + j];
  });
}

}  // namespace wd
