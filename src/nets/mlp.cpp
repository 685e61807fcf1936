// mlp.cpp: the common part of the perceptrons of all devices and precisions: shapes, memory, initial weights.
#include "src/nets/mlp.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/hidden_gradient.h"
#include "kernels/layer_norm.h"
#include "kernels/units.h"
#include "src/device/device.h"
#include "src/device/lockstep.h"
#include "src/device/tensor_device.h"
#include "wd/detail/vectors.h"
#include "wd/error.h"
#include "wd/tensor_rows.h"

namespace wd {

namespace {

std::int64_t aligned(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

// Number of entries in 16 bytes: every view starts at a multiple of it.
std::int64_t alignment(Precision precision) { return precision == kBf16 ? 8 : 4; }

// Floating-point operations per row: 2 * inputs * outputs, summed over the layers behind the first one.
double products(const std::vector<std::int64_t>& widths) {
  double flop = 0.0;
  for (std::size_t l = 1; l + 1 < widths.size(); ++l)
    flop += 2.0 * static_cast<double>(widths[l]) * static_cast<double>(widths[l + 1]);
  return flop;
}

NormMatrix matrix_of(const at::Tensor& x) {
  if (x.scalar_type() == at::kFloat) return {.floats = x.mutable_data_ptr<float>()};
  return {.halves = static_cast<std::uint16_t*>(x.mutable_data_ptr())};
}

}  // namespace

std::vector<std::int64_t> MlpShape::widths() const {
  std::vector<std::int64_t> all = {parts[0].size};
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
  for (std::size_t k = 1; k < parts.size(); ++k) count += aligned(padded(parts[k].size) * width[1], unit);
  if (layer_norm)
    for (const int out : hidden) count += 2 * aligned(out, unit);
  return copies * count;
}

std::vector<Layer> MlpShape::bind(const at::Tensor& flat) const {
  const auto width = widths();
  const std::int64_t unit = alignment(precision);
  std::int64_t offset = 0;
  std::vector<Layer> layers;
  const at::Tensor sections =
      copies == 1 ? flat : flat.narrow(0, 0, num_parameters()).unflatten(0, {copies, -1});
  const auto next = [&](std::int64_t n) {
    const at::Tensor view = sections.narrow(-1, offset, n);
    offset += aligned(n, unit);
    return view;
  };
  const auto next_weight = [&](std::int64_t out, std::int64_t in) {
    return next(padded(in) * out).unflatten(-1, {out, padded(in)}).narrow(-1, 0, in);
  };
  for (std::size_t l = 0; l + 1 < width.size(); ++l) {
    const std::int64_t out = width[l + 1];
    Layer layer;
    layer.weight = next_weight(out, width[l]);
    for (std::size_t k = 1; l == 0 && k < parts.size(); ++k)
      layer.further.push_back(next_weight(out, parts[k].size));
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
  if (layout.as_table() && shape_.parts[0].is_observation())
    first_ = std::make_unique<TableLayer>(layout, shape_.widths()[1], device,
                                          shape_.precision == kBf16 && !shape_.hidden.empty() &&
                                              !shape_.layer_norm && shape_.parts.size() == 1);
  const auto has_shared = [&](std::size_t bytes) {
    return device.is_cuda() && shared_memory(device) >= bytes;
  };
  chains_ = has_chain() && has_shared(ChainShape::shared_bytes(shape_.hidden.back()));
  perceptron_ = has_perceptron() && has_shared(PerceptronShape::kSharedBytes);
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
  const double hidden_gain = shape_.activation == kRelu ? std::sqrt(2.0) : 5.0 / 3.0;
  const std::vector<Layer> layers = shape_.bind(flat);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    initialize_layer(layers[l], method, l + 1 == layers.size() ? gain : hidden_gain, seed,
                     static_cast<int>(l));
    if (!layers[l].scale.defined()) continue;
    layers[l].scale.fill_(1);
    layers[l].shift.zero_();
  }
}

std::vector<NamedTensor> Mlp::hidden_parameters() const {
  std::vector<NamedTensor> named;
  const auto add_further = [&](std::size_t l) {
    for (std::size_t k = 0; k < layers_[l].further.size(); ++k)
      named.push_back({concat(l, '.', shape_.parts[k + 1].name, ".weight"), layers_[l].further[k]});
  };
  if (layers_.size() == 1) add_further(0);
  for (std::size_t l = 0; l + 1 < layers_.size(); ++l) {
    named.push_back({concat(l, ".weight"), layers_[l].weight});
    add_further(l);
    named.push_back({concat(l, ".bias"), layers_[l].bias});
    if (!shape_.layer_norm) continue;
    named.push_back({concat(l, ".norm.weight"), layers_[l].scale});
    named.push_back({concat(l, ".norm.bias"), layers_[l].shift});
  }
  return named;
}

std::vector<at::Tensor> Mlp::hidden(const Workspace& workspace) const {
  std::vector<at::Tensor> layers = static_cast<const Memory&>(workspace).hidden;
  for (std::size_t l = 0; l < layers.size(); ++l) layers[l] = layers[l].narrow(-1, 0, shape_.hidden[l]);
  return layers;
}

std::unique_ptr<Network::Workspace> Mlp::make_workspace(std::int64_t rows, bool with_gradients) const {
  auto memory = std::make_unique<Memory>();
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(torch_device(device_));
  const bool cuda = device_.is_cuda(), rounded = shape_.precision == kBf16;
  const auto halves = cuda && rounded ? floats.dtype(at::kBFloat16) : floats;
  const auto of_copies = [&](const at::Tensor& x) {
    return shape_.copies == 1 ? x : x.unflatten(0, {shape_.copies, -1});
  };
  const std::int64_t all_rows = shape_.copies * rows;
  for (std::size_t l = 0; l < shape_.hidden.size(); ++l) {
    const std::int64_t width = cuda ? shape_.padded(shape_.hidden[l]) : shape_.hidden[l];
    // Padding stays 0. Rows that are never written hold 0, because NaN times a gradient of 0 would be NaN.
    memory->hidden.push_back(of_copies(zeros_together({all_rows, width}, halves)));
    if (with_gradients) memory->hidden_grad.push_back(of_copies(zeros_together({all_rows, width}, halves)));
    if (!shape_.layer_norm) continue;
    memory->normalized.push_back(zeros_together({rows, width}, floats));
    memory->inverse_std.push_back(zeros_together({rows}, floats));
  }
  if (chains_ && !perceptron_) {
    memory->signs = zeros_together({rows, shape_.hidden.back() / 8}, floats.dtype(at::kByte));
    memory->below_signs = at::zeros_like(memory->signs);
  }
  if (with_gradients && shape_.layer_norm && cuda && !shape_.hidden.empty()) {
    const int widest = *std::max_element(shape_.hidden.begin(), shape_.hidden.end());
    memory->norm_parts = at::empty({kNormParts, 2, widest}, floats);
  }
  if (with_gradients && rounded && !shape_.hidden.empty())
    memory->output_grad =
        of_copies(zeros_together({all_rows, cuda ? shape_.padded(shape_.outputs) : shape_.outputs}, halves));
  if (with_gradients && perceptron_)
    memory->sum_parts = at::empty({perceptron().parts(rows), num_parameters()}, floats);
  if (with_gradients && cuda) {
    std::int64_t widest = aligned(shape_.outputs, 4);
    for (const int width : shape_.hidden) widest = std::max(widest, shape_.padded(width));
    memory->bias_parts = at::empty({shape_.copies, HiddenGradientArgs::kMaxParts, widest}, floats);
  }
  const std::int64_t first_width = shape_.padded(shape_.widths()[1]);
  if (reads_blocks()) {
    if (with_gradients)
      memory->first = at::empty({(rows + agents_ - 1) / agents_, first_->sums_size()}, floats);
  } else if (cuda && rounded && !shape_.hidden.empty() && (!reads_observations() || shape_.parts.size() > 1))
    memory->first = of_copies(zeros_together({all_rows, first_width}, floats));
  const std::int64_t shared_width = cuda ? first_width : shape_.widths()[1];
  if (std::ranges::any_of(shape_.parts, &InputPart::per_replica))
    memory->units = zeros_together({(rows + agents_ - 1) / agents_, shared_width}, floats);
  if (std::ranges::any_of(shape_.parts, &InputPart::per_slot)) {
    memory->slots = zeros_together({agents_, shared_width}, floats);
    if (cuda && with_gradients)
      memory->slot_parts = at::zeros({std::int64_t{kSlotParts} * agents_, shared_width}, floats);
  }
  if (rounded && reads_observations() && (!cuda || shape_.hidden.empty()))
    memory->input = zeros_together({rows, shape_.padded(shape_.parts[0].size)}, floats);
  memory->output = of_copies(make_output(all_rows, shape_.outputs, floats));
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
  if (signs.defined()) {
    rows->signs = signs.narrow(0, begin, n);
    rows->below_signs = below_signs.narrow(0, begin, n);
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
  for (std::size_t k = reads_tables() ? 1 : 0; k < shape_.parts.size(); ++k)
    WD_CHECK(input.parts[k].defined() && input.parts[k].size(-1) == shape_.parts[k].size,
             "a network got other numbers than its part ", shape_.parts[k].name);
  run_forward(input, static_cast<Memory&>(workspace));
}

void Mlp::backward(const NetworkInput& input, const at::Tensor& output_grad, Workspace& workspace,
                   Gradient* gradient, std::span<const at::Tensor> part_grads) const {
  WD_CHECK(!reads_tables() || part_grads.empty() || !part_grads[0].defined(),
           "a table of observations has no gradient");
  run_backward(input, output_grad, static_cast<Memory&>(workspace), static_cast<LayerGradients*>(gradient),
               part_grads);
}

void Mlp::finish_gradient(const at::Tensor& derived, const at::Tensor& flat) const {
  first_->write_gradient(derived, shape_.bind(flat)[0]);
}

double Mlp::parts_flop() const {
  double flop = 0.0;
  for (std::size_t k = reads_tables() ? 1 : 0; k < shape_.parts.size(); ++k)
    flop += 2.0 * shape_.parts[k].size * static_cast<double>(shape_.widths()[1]) *
            (shape_.parts[k].per_slot      ? 0.0  // once for all replicas
             : shape_.parts[k].per_replica ? 1.0
                                           : agents_);
  return flop;
}

double Mlp::forward_flop() const {
  return (reads_tables() ? first_->forward_flop() : 0.0) + parts_flop() + agents_ * products(shape_.widths());
}

// Twice the products of the forward pass, without the gradients of parts of the input.
double Mlp::backward_flop() const {
  return (reads_tables() ? first_->backward_flop() : 0.0) + parts_flop() +
         2.0 * agents_ * products(shape_.widths());
}

std::int64_t Mlp::activation_size() const {
  const std::int64_t hidden = std::accumulate(shape_.hidden.begin(), shape_.hidden.end(), std::int64_t{0});
  const auto layers = static_cast<std::int64_t>(shape_.hidden.size());
  return shape_.outputs + hidden + (shape_.layer_norm ? hidden + layers : 0) +
         (has_chain() && !has_perceptron() ? shape_.hidden.back() / 8 : 0);
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
                             LayerGradients* gradient) const {
  LayerNormBackwardArgs args;
  args.rows = grad.size(0);
  args.width = static_cast<int>(layers_[l].scale.size(0));
  args.stride = memory.normalized[l].stride(0);
  args.scale = layers_[l].scale.const_data_ptr<float>();
  args.normalized = memory.normalized[l].const_data_ptr<float>();
  args.inverse_std = memory.inverse_std[l].const_data_ptr<float>();
  args.grad = matrix_of(grad);
  if (gradient != nullptr) {
    args.scale_grad = gradient->layers[l].scale.mutable_data_ptr<float>();
    args.shift_grad = gradient->layers[l].shift.mutable_data_ptr<float>();
  }
  if (memory.norm_parts.defined()) args.parts = memory.norm_parts.mutable_data_ptr<float>();
  layer_norm_backward(current_queue(device_), args);
}

at::Tensor Mlp::shared_rows(const InputPart& part, std::int64_t n, const Memory& memory) const {
  if (part.per_slot) return memory.slots;
  return part.per_replica ? memory.units.narrow(0, 0, n / agents_) : at::Tensor();
}

void Mlp::spread(const InputPart& part, const at::Tensor& shared, const at::Tensor& sums, std::int64_t n,
                 bool add) const {
  spread_units(current_queue(device_), {.units = n / agents_,
                                        .agents = agents_,
                                        .width = layers_[0].weight.size(0),
                                        .slots = part.per_slot,
                                        .unit = wd::rows_of<const float>(shared),
                                        .rows = wd::rows_of<float>(sums),
                                        .add = add});
}

void Mlp::collect(const at::Tensor& grad, std::int64_t n, const Memory& memory) const {
  const Queue queue = current_queue(device_);
  const std::int64_t width = layers_[0].weight.size(0);
  if (memory.units.defined())
    sum_units(queue, {.units = n / agents_,
                      .agents = agents_,
                      .width = width,
                      .rows = wd::rows_of<const float>(grad),
                      .unit = wd::rows_of<float>(memory.units)});
  if (!memory.slots.defined()) return;
  const auto sum = [&](std::int64_t units, const at::Tensor& rows, std::int64_t parts, const at::Tensor& to) {
    sum_slots(queue, {.units = units,
                      .agents = agents_,
                      .width = width,
                      .parts = parts,
                      .rows = wd::rows_of<const float>(rows),
                      .slot = wd::rows_of<float>(to)});
  };
  if (!memory.slot_parts.defined()) return sum(n / agents_, grad, 1, memory.slots);
  sum(n / agents_, grad, kSlotParts, memory.slot_parts);
  sum(kSlotParts, memory.slot_parts, 1, memory.slots);
}

void add_columns(Rows<const float> x, std::int64_t n, std::int64_t columns, float* sum) {
  with_vectors([&](auto) {
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < columns; ++j) sum[j] += x[i][j];
  });
}

}  // namespace wd
