// recurrent.cpp: runs the layers before the memory for all rows at once, then the cell step by step, then the
// layers behind it; and back.
#include "src/nets/recurrent.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <tuple>

#include "kernels/hidden_gradient.h"
#include "kernels/matmul.h"
#include "src/device/device.h"
#include "src/device/lockstep.h"
#include "src/device/tensor_device.h"
#include "src/nets/mlp.h"
#include "wd/detail/blocks.h"
#include "wd/error.h"
#include "wd/tensor_rows.h"

namespace wd {

namespace {

// So that tensor cores can read them in any precision.
std::int64_t room_of_tensor(std::int64_t n) { return round_up(n, 8); }

const bool registered = [] {
  register_network(std::make_unique<RecurrentSettings>("mingru", CellKind::kMinGru));
  register_network(std::make_unique<RecurrentSettings>("gru", CellKind::kGru));
  register_network(std::make_unique<RecurrentSettings>("lstm", CellKind::kLstm));
  return true;
}();

}  // namespace

void RecurrentSettings::describe(Fields& field) {
  field("width", width_, {1, 4096}, "width of the memory, and of the layer before it");
  field("horizon", horizon_, {0, 1e6},
        "steps over which units remember at first, about: from 2 to so many, evenly in their logarithm; 0: "
        "about 2, of an lstm 4");
}

void RecurrentSettings::take(const NetworkSettings& other) {
  if (const auto* const memory = dynamic_cast<const RecurrentSettings*>(&other))
    std::tie(width_, horizon_) = std::tie(memory->width_, memory->horizon_);
}

std::shared_ptr<Module> RecurrentSettings::make(const ModuleShape&) const {
  throw std::logic_error(concat(name_, " is no module"));
}

struct RecurrentNetwork::Memory final : Workspace {
  std::unique_ptr<Workspace> before, behind;
  at::Tensor h, h_grad;       // [rows, H]
  at::Tensor kept, previous;  // [rows, H], of cells with products
  at::Tensor scratch;         // on a CPU, of the kernels: [rows, gates H], or [rows, H] of a MinGRU
  at::Tensor bias_parts;      // on a GPU, the same of the gradient of b

  // For forward() only: backward() needs all rows of a sequence.
  std::unique_ptr<Workspace> view(std::int64_t first, std::int64_t n,
                                  const Workspace& scratch) const override {
    const auto& working = static_cast<const Memory&>(scratch);
    auto part = std::make_unique<Memory>();
    part->before = before->view(first, n, *working.before);
    part->behind = behind->view(first, n, *working.behind);
    part->output = part->behind->output;
    part->h = h.narrow(0, first, n);
    part->kept = working.kept;
    part->previous = working.previous;
    part->scratch = working.scratch;
    return part;
  }
};

struct RecurrentNetwork::Sums final : Gradient {
  std::unique_ptr<Gradient> before, behind;
  Layer cell;
};

RecurrentNetwork::RecurrentNetwork(const RecurrentSettings& settings, std::unique_ptr<Network> before,
                                   std::size_t parts, std::unique_ptr<Network> behind, int agents,
                                   Device device, bool tf32)
    : shape_(settings.cell()),
      horizon_(settings.horizon()),
      before_(std::move(before)),
      behind_(std::move(behind)),
      parts_(parts),
      agents_(agents),
      device_(device) {
  if (device.is_cuda() && shape_.has_products() && shape_.width > kMaxCellWidth)
    throw UsageError(concat("model.type = ", settings.name(), ": width = ", shape_.width,
                            ": a GPU holds at most ", kMaxCellWidth, " units: lower it, or take mingru"));
  const std::int64_t H = shape_.width, gates = shape_.gates() * H;
  begin_[kCell] = before_->num_parameters();
  begin_[kBehind] =
      begin_[kCell] + (shape_.has_products() ? room_of_tensor(gates * H) + room_of_tensor(gates) : 0);
  begin_[kBehind + 1] = begin_[kBehind] + behind_->num_parameters();
  if (!shape_.has_products()) return;
  transposed_ = at::empty({H, gates}, at::TensorOptions().device(torch_device(device)));
  if (device.is_cuda()) linear_ = gpu_linear(torch_device(device), tf32);
}

Layer RecurrentNetwork::cell_in(const at::Tensor& flat) const {
  if (!shape_.has_products()) return {};
  const std::int64_t H = shape_.width, gates = shape_.gates() * H;
  const at::Tensor own = section(flat, kCell);
  Layer cell;
  cell.weight = own.narrow(0, 0, gates * H).view({gates, H});
  cell.bias = own.narrow(0, room_of_tensor(gates * H), gates);
  return cell;
}

// The weights of each gate are drawn apart. A unit whose gate keeps a share of t / (1 + t) in each step
// remembers over about 1 + t of them; t is 1 to the horizon, evenly in their logarithm (Tallec and Ollivier
// 2018, arXiv 1804.11188). Without a horizon, b of an LSTM's forget gate is 1 (Jozefowicz et al. 2015).
void RecurrentNetwork::initialize(const at::Tensor& flat, InitMethod method, double gain,
                                  std::uint64_t seed) const {
  constexpr int kFirst = 100;  // numbers of layers, behind those of `before`
  before_->initialize(section(flat, kBefore), method, 1.0, seed);
  const Layer x = before_->output_layer(section(flat, kBefore)), y = cell_in(flat);
  const auto of_gate = [&](const Layer& layer, int gate) {
    Layer rows;
    rows.weight = layer.weight.narrow(0, gate * shape_.width, shape_.width);
    rows.bias = layer.bias.narrow(0, gate * shape_.width, shape_.width);
    return rows;
  };
  for (int gate = 0; gate < shape_.gates(); ++gate) {
    initialize_layer(of_gate(x, gate), method, 1.0, seed, kFirst + 2 * gate);
    if (shape_.has_products()) initialize_layer(of_gate(y, gate), method, 1.0, seed, kFirst + 2 * gate + 1);
  }
  const bool lstm = shape_.kind == CellKind::kLstm, mingru = shape_.kind == CellKind::kMinGru;
  if (horizon_ > 0) {
    const at::Tensor log_steps =
        (at::arange(shape_.width).to(at::kDouble) + 0.5) * (std::log(horizon_) / shape_.width);
    (mingru ? of_gate(x, 0) : of_gate(y, 1)).bias.copy_(mingru ? -log_steps : log_steps);
  } else if (lstm) {
    of_gate(y, 1).bias.fill_(1.0);
  }
  behind_->initialize(section(flat, kBehind), method, gain, seed ^ 0xbe41d);
}

void RecurrentNetwork::bind(const at::Tensor& parameters, const at::Tensor& shadow) {
  const auto of = [&](const at::Tensor& flat, Section k) {
    return flat.defined() ? section(flat, k) : at::Tensor();
  };
  before_->bind(of(parameters, kBefore), of(shadow, kBefore));
  behind_->bind(of(parameters, kBehind), of(shadow, kBehind));
  cell_ = cell_in(parameters);
}

void RecurrentNetwork::parameters_changed() {
  before_->parameters_changed();
  behind_->parameters_changed();
  if (transposed_.defined())
    cell_weight(current_queue(device_), {.shape = shape_,
                                         .weight = cell_.weight.const_data_ptr<float>(),
                                         .transposed = transposed_.mutable_data_ptr<float>()});
}

std::vector<NamedTensor> RecurrentNetwork::hidden_parameters() const {
  std::vector<NamedTensor> named;
  const std::vector<NamedTensor> layers = before_->hidden_parameters();
  const bool single =
      std::ranges::all_of(layers, [](const NamedTensor& tensor) { return tensor.name.starts_with("0."); });
  for (const NamedTensor& tensor : layers)
    named.push_back({"input." + (single ? tensor.name.substr(2) : tensor.name), tensor.tensor});
  const auto add = [&](const Layer& layer, const std::string& name, const std::string& kind) {
    named.push_back({name + "weight" + kind, layer.weight});
    named.push_back({name + "bias" + kind, layer.bias});
  };
  add(*before_->head(), "cell.", "_ih");
  if (shape_.has_products()) add(cell_, "cell.", "_hh");
  for (const NamedTensor& tensor : behind_->hidden_parameters())
    named.push_back({"head." + tensor.name, tensor.tensor});
  add(*behind_->head(), "head.", "");
  return named;
}

// A MinGRU's z, a GRU's r and z, an LSTM's i and f.
at::Tensor RecurrentNetwork::gates(const Workspace& workspace) const {
  const at::Tensor& rows = static_cast<const Memory&>(workspace).before->output;
  return rows.narrow(1, 0, (shape_.has_products() ? 2 : 1) * shape_.width);
}

std::unique_ptr<Network::Workspace> RecurrentNetwork::make_workspace(std::int64_t rows,
                                                                     bool with_gradients) const {
  auto memory = std::make_unique<Memory>();
  memory->before = before_->make_workspace(rows, with_gradients);
  memory->behind = behind_->make_workspace(rows, with_gradients);
  memory->output = memory->behind->output;
  const auto columns = [&](std::int64_t n) {
    return zeros_together({rows, n}, at::TensorOptions().device(torch_device(device_)));
  };
  const std::int64_t H = shape_.width, gates = shape_.gates() * H;
  memory->h = columns(H);
  if (with_gradients) memory->h_grad = columns(H);
  if (shape_.has_products()) {
    memory->kept = columns(H);
    memory->previous = columns(H);
  }
  if (!device_.is_cuda()) memory->scratch = columns(shape_.has_products() ? gates : H);
  if (linear_ && with_gradients)
    memory->bias_parts = at::empty({HiddenGradientArgs::kMaxParts, gates}, memory->h.options());
  return memory;
}

std::unique_ptr<Network::Gradient> RecurrentNetwork::make_gradient(const at::Tensor& flat) const {
  auto sums = std::make_unique<Sums>();
  sums->flat = flat;
  sums->before = before_->make_gradient(section(flat, kBefore));
  sums->behind = behind_->make_gradient(section(flat, kBehind));
  sums->derived = sums->before->derived;
  sums->cell = cell_in(flat);
  return sums;
}

CellShape RecurrentNetwork::shape_of(const NetworkInput& input) const {
  CellShape shape = shape_;
  shape.sequences = input.state.size(0);
  shape.steps = shape.sequences > 0 ? input.restarted.size(0) / shape.sequences : 1;
  return shape;
}

NetworkInput RecurrentNetwork::behind_input(const NetworkInput& input, const Memory& memory) const {
  NetworkInput behind;
  behind.parts[0] = memory.h.narrow(0, 0, input.restarted.size(0));
  std::copy(input.parts.begin() + static_cast<std::ptrdiff_t>(parts_), input.parts.end(),
            behind.parts.begin() + 1);
  return behind;
}

void RecurrentNetwork::forward(const NetworkInput& input, Workspace& workspace) const {
  auto& memory = static_cast<Memory&>(workspace);
  before_->forward(input, *memory.before);
  cell_forward(current_queue(device_), {.shape = shape_of(input),
                                        .rows = rows_of<float>(memory.before->output),
                                        .kept = at_row<float>(memory.kept),
                                        .weight = at_row<const float>(transposed_),
                                        .bias = at_row<const float>(cell_.bias),
                                        .state = rows_of<const float>(input.state),
                                        .restarted = input.restarted.const_data_ptr<std::uint8_t>(),
                                        .output = at_row<float>(memory.h),
                                        .previous = at_row<float>(memory.previous),
                                        .next_state = rows_of<float>(input.next_state),
                                        .products = at_row<float>(memory.scratch)});
  behind_->forward(behind_input(input, memory), *memory.behind);
}

void RecurrentNetwork::backward(const NetworkInput& input, const at::Tensor& output_grad,
                                Workspace& workspace, Gradient* gradient,
                                std::span<const at::Tensor> part_grads) const {
  auto& memory = static_cast<Memory&>(workspace);
  auto* const sums = static_cast<Sums*>(gradient);
  const std::int64_t n = input.restarted.size(0);
  const auto of_before = part_grads.first(std::min(parts_, part_grads.size()));
  const bool goes_on = sums != nullptr || std::ranges::any_of(of_before, &at::Tensor::defined);
  if (sums != nullptr) sums->before->is_old = sums->behind->is_old = sums->is_old;
  std::vector<at::Tensor> of_behind = {goes_on ? memory.h_grad : at::Tensor()};
  for (const at::Tensor& grad : part_grads.subspan(of_before.size())) of_behind.push_back(grad);
  behind_->backward(behind_input(input, memory), output_grad, *memory.behind,
                    sums != nullptr ? sums->behind.get() : nullptr, of_behind);
  if (!goes_on) return;
  cell_backward(current_queue(device_), {.shape = shape_of(input),
                                         .rows = rows_of<float>(memory.before->output),
                                         .kept = at_row<float>(memory.kept),
                                         .weight = at_row<const float>(cell_.weight),
                                         .state = rows_of<const float>(input.state),
                                         .restarted = input.restarted.const_data_ptr<std::uint8_t>(),
                                         .previous = at_row<const float>(memory.previous),
                                         .output_grad = at_row<const float>(memory.h_grad),
                                         .state_grad = at_row<float>(memory.scratch)});
  if (sums != nullptr && shape_.has_products()) add_products(memory, n, sums->cell, !sums->is_old);
  before_->backward(input, memory.before->output.narrow(0, 0, n), *memory.before,
                    sums != nullptr ? sums->before.get() : nullptr, of_before);
  if (sums != nullptr) sums->is_old = false;
}

void RecurrentNetwork::add_products(const Memory& memory, std::int64_t rows, const Layer& sums,
                                    bool add) const {
  const std::int64_t H = shape_.width, gates = shape_.gates() * H;
  const bool gru = shape_.kind == CellKind::kGru;  // whose third y has a gradient of its own
  const auto add_gates = [&](const at::Tensor& of_y, std::int64_t first, std::int64_t count) {
    Layer part;
    part.weight = sums.weight.narrow(0, first, count);
    part.bias = sums.bias.narrow(0, first, count);
    add_product(of_y.narrow(0, 0, rows).narrow(1, 0, count), memory.previous.narrow(0, 0, rows), memory, part,
                add);
  };
  add_gates(memory.before->output, 0, gru ? 2 * H : gates);
  if (gru) add_gates(memory.kept, 2 * H, H);
}

void RecurrentNetwork::add_product(const at::Tensor& of_y, const at::Tensor& previous, const Memory& memory,
                                   const Layer& sums, bool add) const {
  const std::int64_t n = of_y.size(0), columns = of_y.size(1), row = of_y.stride(0);
  if (linear_) {
    at::Tensor weight = sums.weight;
    linear_->backward_weight(of_y, previous, weight, add);
    return cuda::hidden_gradient(current_queue(device_).stream,
                                 {.rows = n,
                                  .width = static_cast<int>(columns),
                                  .grad = {.floats = of_y.mutable_data_ptr<float>(), .stride = row},
                                  .bias_grad = sums.bias.mutable_data_ptr<float>(),
                                  .add = add,
                                  .biases = static_cast<int>(columns),
                                  .parts = memory.bias_parts.mutable_data_ptr<float>()});
  }
  matmul({.m = columns,
          .n = shape_.width,
          .k = n,
          .a = {of_y.const_data_ptr<float>(), 1, row},
          .b = {previous.const_data_ptr<float>(), shape_.width},
          .c = sums.weight.mutable_data_ptr<float>(),
          .c_row = shape_.width,
          .add = true});
  add_columns(rows_of<const float>(of_y), n, columns, sums.bias.mutable_data_ptr<float>());
}

std::int64_t RecurrentNetwork::activation_size() const {
  return before_->activation_size() + (shape_.has_products() ? 3 : 1) * shape_.width +
         behind_->activation_size();
}

}  // namespace wd
