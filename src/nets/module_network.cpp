// module_network.cpp: forward passes that record an autograd graph, and gradients that are summed per lane.
#include "src/nets/module_network.h"

#include <ATen/ATen.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <algorithm>

#include "src/device/strict.h"
#include "src/device/tensor_device.h"
#include "wd/autograd.h"
#include "wd/error.h"

namespace wd {

namespace {

// Parameters are in memory in the order of named_parameters().
constexpr std::int64_t kAlignment = 4;  // floats that make 16 bytes

std::int64_t aligned(std::int64_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

ModuleInput::ModuleInput(const ModuleShape& shape, std::vector<at::Tensor> parts)
    : shape_(&shape), parts_(std::move(parts)) {}

std::size_t ModuleInput::index(std::string_view name) const {
  const auto found = std::ranges::find(shape_->parts, name, &InputPart::name);
  if (found != shape_->parts.end()) return static_cast<std::size_t>(found - shape_->parts.begin());
  std::string names;
  for (const InputPart& part : shape_->parts) names += concat(names.empty() ? "" : ", ", part.name);
  throw UsageError(concat("a module's input has no part called ", name, ", but ", names));
}

at::Tensor ModuleInput::rows(std::size_t part) const {
  const InputPart& of = shape_->parts[part];
  if (of.per_replica) return parts_[part].repeat_interleave(shape_->agents, 0);
  if (!of.per_slot) return parts_[part];
  const std::int64_t replicas = parts_[0].size(0) / (shape_->parts[0].per_replica ? 1 : shape_->agents);
  return parts_[part].repeat({replicas, 1});
}

at::Tensor ModuleInput::operator[](std::string_view name) const { return rows(index(name)); }
const at::Tensor& ModuleInput::stored(std::string_view name) const { return parts_[index(name)]; }
at::Tensor ModuleInput::observation() const { return rows(0); }

at::Tensor Module::forward(const ModuleInput& input) { return forward(input.observation()); }
Module::Step Module::step(const ModuleInput& input, const at::Tensor& state) {
  return step(input.observation(), state);
}

at::Tensor Module::forward(const at::Tensor&) {
  throw UsageError(concat(name(), " does not override wd::Module::forward()"));
}

Module::Step Module::step(const at::Tensor&, const at::Tensor&) {
  throw UsageError(concat(name(), " has a state, and does not override wd::Module::step()"));
}

struct ModuleNetwork::Memory final : Workspace {
  bool records = false;
  at::Tensor result;               // of the last forward(), with its graph
  std::vector<at::Tensor> inputs;  // the parts that it began with, if there are several

  // Outputs only: backward() needs the graph of a whole forward().
  std::unique_ptr<Workspace> view(std::int64_t first, std::int64_t n, const Workspace&) const override {
    auto part = std::make_unique<Memory>();
    part->output = output.narrow(0, first, n);
    return part;
  }
};

struct ModuleNetwork::Sums final : Gradient {
  std::vector<at::Tensor> views;
};

ModuleNetwork::ModuleNetwork(const NetworkSettings& settings, const PolicyLayout& layout, ModuleShape shape,
                             Device device)
    : settings_(settings.copy()), shape_(std::move(shape)), device_(device), agents_(layout.num_agents) {
  const WithAutograd guard(true);
  WD_CHECK(!layout.as_table() || !shape_.parts[0].is_observation(), "a module reads rows, and no table");
  // LibTorch exchanges the memory of a parameter (set_data) only between the devices that it knows.
  if (gpu_type() == at::kPrivateUse1 && device.is_cuda())
    throw UsageError(
        concat("model.type = ", settings.name(),
               ": LibTorch cannot place a module on the emulated GPU: set trainer.device to cpu, "
               "or the type to fully_connected"));
  module_ = settings.make(shape_);
  for (const auto& named : module_->named_parameters()) {
    names_.push_back(named.key());
    parameters_.push_back(named.value());
  }
  check();
  find_output_layer();
  module_->to(torch_device(device));
  for (std::size_t k = 0; k < parameters_.size(); ++k)
    parameters_[k] = *module_->named_parameters().find(names_[k]);
}

void ModuleNetwork::find_output_layer() {
  const Module::OutputLayer layer = module_->output_layer();
  if (!layer.weight.defined()) return;
  const auto index = [&](const at::Tensor& tensor) {
    const auto found =
        std::ranges::find_if(parameters_, [&](const at::Tensor& p) { return p.is_same(tensor); });
    return static_cast<std::size_t>(found - parameters_.begin());
  };
  output_layer_ = {index(layer.weight), index(layer.bias)};
  if (std::max(output_layer_->first, output_layer_->second) == parameters_.size() ||
      layer.weight.dim() != 2 || layer.weight.size(0) != shape_.outputs ||
      layer.bias.sizes() != at::IntArrayRef{shape_.outputs})
    throw UsageError(concat("model.type = ", settings_->name(),
                            ": output_layer() must be two parameters of the module, a weight [",
                            shape_.outputs, ", n] and a bias [", shape_.outputs, "]"));
}

void ModuleNetwork::check() const {
  const std::string name = concat("model.type = ", settings_->name(), ": ");
  if (parameters_.empty()) throw UsageError(name + "the module has no parameters to learn");
  if (!module_->buffers().empty())
    throw UsageError(name + "the module has buffers, as batch normalization has; use layer normalization");
  for (std::size_t k = 0; k < parameters_.size(); ++k) {
    if (parameters_[k].scalar_type() != at::kFloat)
      throw UsageError(
          concat(name, "parameter ", names_[k], " is ", parameters_[k].scalar_type(), ": float32 only"));
  }
  const bool shares = std::ranges::any_of(shape_.parts, &InputPart::is_shared);
  const std::int64_t units = 3, rows = units * (shares ? shape_.agents : 1);
  const auto expect = [&](const char* what, const at::Tensor& result, std::int64_t columns) {
    if (result.defined() && result.sizes() == at::IntArrayRef{rows, columns} &&
        result.scalar_type() == at::kFloat)
      return;
    throw UsageError(concat(name, what, " of ", rows, " rows of ", shape_.inputs, " entries gives ",
                            result.defined() ? concat(result.sizes()) : "nothing", " where float32 [", rows,
                            ", ", columns, "] is expected"));
  };
  std::vector<at::Tensor> parts;
  for (const InputPart& part : shape_.parts)
    parts.push_back(at::zeros({part.per_replica ? units
                               : part.per_slot  ? shape_.agents
                                                : rows,
                               part.size},
                              parameters_[0].options()));
  const ModuleInput input(shape_, parts);
  if (state_size() == 0) return expect("forward()", module_->forward(input), shape_.outputs);
  const Module::Step step = module_->step(input, at::zeros({rows, state_size()}, parameters_[0].options()));
  expect("the output of step()", step.output, shape_.outputs);
  expect("the state of step()", step.state, state_size());
}

std::int64_t ModuleNetwork::num_parameters() const {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : parameters_) count += aligned(parameter.numel());
  return count;
}

std::vector<at::Tensor> ModuleNetwork::views(const at::Tensor& flat) const {
  std::vector<at::Tensor> all;
  std::int64_t offset = 0;
  for (const at::Tensor& parameter : parameters_) {
    all.push_back(flat.narrow(0, offset, parameter.numel()).view(parameter.sizes()));
    offset += aligned(parameter.numel());
  }
  return all;
}

Layer ModuleNetwork::output_layer(const at::Tensor& flat) const {
  if (!output_layer_) return {};
  const std::vector<at::Tensor> all = views(flat);
  return {all[output_layer_->first], all[output_layer_->second], {}, {}, {}};
}

void ModuleNetwork::initialize(const at::Tensor& flat, InitMethod method, double gain,
                               std::uint64_t seed) const {
  const WithAutograd guard(false);
  at::manual_seed(seed);
  const std::shared_ptr<Module> fresh = settings_->make(shape_);
  const std::vector<at::Tensor> into = views(flat);
  std::size_t k = 0;
  for (const auto& named : fresh->named_parameters()) into[k++].copy_(named.value());
  if (output_layer_) initialize_layer(output_layer(flat), method, gain, seed, 0);
}

void ModuleNetwork::bind(const at::Tensor& parameters, const at::Tensor&) {
  const std::vector<at::Tensor> bound = views(parameters);
  for (std::size_t k = 0; k < bound.size(); ++k) parameters_[k].set_data(bound[k]);
}

std::vector<NamedTensor> ModuleNetwork::hidden_parameters() const {
  std::vector<NamedTensor> named;
  for (std::size_t k = 0; k < names_.size(); ++k) named.push_back({names_[k], parameters_[k].detach()});
  return named;
}

std::unique_ptr<Network::Workspace> ModuleNetwork::make_workspace(std::int64_t rows,
                                                                  bool with_gradients) const {
  auto memory = std::make_unique<Memory>();
  memory->records = with_gradients;
  memory->output = at::zeros({rows, shape_.outputs}, at::TensorOptions().device(torch_device(device_)));
  return memory;
}

std::unique_ptr<Network::Gradient> ModuleNetwork::make_gradient(const at::Tensor& flat) const {
  auto sums = std::make_unique<Sums>();
  sums->flat = flat;
  sums->views = views(flat);
  return sums;
}

at::Tensor ModuleNetwork::unroll(const std::vector<at::Tensor>& parts, const NetworkInput& input) const {
  const std::int64_t sequences = input.state.size(0), steps = input.restarted.size(0) / sequences;
  const auto in_step = [&](std::int64_t t) {
    std::vector<at::Tensor> rows;
    for (std::size_t k = 0; k < parts.size(); ++k)
      rows.push_back(shape_.parts[k].per_slot ? parts[k]
                                              : parts[k].unflatten(0, {steps, parts[k].size(0) / steps})[t]);
    return ModuleInput(shape_, std::move(rows));
  };
  const at::Tensor goes_on = input.restarted.eq(0).to(at::kFloat).view({steps, sequences, 1});
  std::vector<at::Tensor> outputs;
  at::Tensor state = input.state;
  for (std::int64_t t = 0; t < steps; ++t) {
    const Module::Step step = module_->step(in_step(t), state * goes_on[t]);
    outputs.push_back(step.output);
    state = step.state;
  }
  if (input.next_state.defined()) input.next_state.copy_(state.detach());
  return steps == 1 ? outputs.front() : at::cat(outputs);
}

void ModuleNetwork::forward(const NetworkInput& input, Workspace& workspace) const {
  auto& memory = static_cast<Memory&>(workspace);
  const WithAutograd guard(memory.records);
  const NotStrict of_the_module;
  std::vector<at::Tensor> parts;
  for (std::size_t k = 0; k < shape_.parts.size(); ++k) parts.push_back(input.parts[k].to(at::kFloat));
  if (memory.records && has_part_gradients())
    for (at::Tensor& part : parts) part = part.detach().requires_grad_();
  const at::Tensor result =
      state_size() == 0 ? module_->forward(ModuleInput(shape_, parts)) : unroll(parts, input);
  memory.output.narrow(0, 0, result.size(0)).copy_(result.detach());
  if (!memory.records) return;
  memory.result = result;
  memory.inputs = std::move(parts);
}

void ModuleNetwork::backward(const NetworkInput&, const at::Tensor& output_grad, Workspace& workspace,
                             Gradient* gradient, std::span<const at::Tensor> part_grads) const {
  auto& memory = static_cast<Memory&>(workspace);
  const WithAutograd guard(true);
  const NotStrict of_autograd;
  const at::Tensor result = std::exchange(memory.result, {});
  const std::vector<at::Tensor> parts = std::exchange(memory.inputs, {});
  std::vector<at::Tensor> of = gradient != nullptr ? parameters_ : std::vector<at::Tensor>();
  const std::size_t learned = of.size();
  std::vector<at::Tensor> into;
  for (std::size_t k = 0; k < part_grads.size(); ++k) {
    if (!part_grads[k].defined()) continue;
    WD_CHECK(has_part_gradients(), "a module gives no gradient of observations alone");
    of.push_back(parts[k]);
    into.push_back(part_grads[k].narrow(0, 0, parts[k].size(0)));
  }
  const auto gradients = torch::autograd::grad({result}, of, {output_grad.clone()}, std::nullopt, false,
                                               /*allow_unused=*/true);
  const at::NoGradGuard no_grad;
  for (std::size_t k = 0; k < learned; ++k)
    if (gradients[k].defined()) static_cast<Sums*>(gradient)->views[k].add_(gradients[k]);
  for (std::size_t k = 0; k < into.size(); ++k)
    gradients[learned + k].defined() ? into[k].copy_(gradients[learned + k]) : into[k].zero_();
}

double ModuleNetwork::forward_flop() const {
  double weights = 0.0;
  for (const at::Tensor& parameter : parameters_)
    if (parameter.dim() > 1) weights += static_cast<double>(parameter.numel());
  return 2.0 * agents_ * weights;
}

}  // namespace wd
