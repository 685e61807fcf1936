// values.cpp: runs a network, and computes the values of choices from its outputs.
#include "src/nets/values.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "wd/error.h"
#include "wd/tensor_rows.h"

namespace wd {

std::vector<NamedTensor> parameters_with_head(const Network& network) {
  std::vector<NamedTensor> named = network.hidden_parameters();
  if (const Layer* const head = network.head()) {
    named.push_back({"head.weight", head->weight});
    named.push_back({"head.bias", head->bias});
  }
  return named;
}

ValuesShape values_shape(const PolicyLayout& layout, const ModelSettings& model) {
  const std::vector<int>& heads = layout.action_space.heads;
  ValuesShape shape;
  shape.choices = layout.action_space.choices();
  shape.num_heads = static_cast<int>(heads.size());
  std::ranges::copy(heads, shape.head_size);
  shape.quantiles = model.quantiles;
  shape.dueling = model.dueling;
  return shape;
}

// Without dueling, Z is the output of the inner network; with one quantile, the output is Z.
struct ValuesNetwork::Memory final : InnerMemory {
  at::Tensor z;            // [rows, N * K]
  at::Tensor output_grad;  // [rows, outputs of the inner network], if there are gradients

  std::unique_ptr<Workspace> view(std::int64_t first, std::int64_t n,
                                  const Workspace& scratch) const override {
    auto rows = std::make_unique<Memory>(static_cast<const Memory&>(scratch));
    rows->z = z.narrow(0, first, n);
    rows->output = output.narrow(0, first, n);
    rows->inner = inner->view(first, n, inner_of(scratch));
    return rows;
  }
};

ValuesNetwork::ValuesNetwork(std::unique_ptr<Network> inner, const PolicyLayout& layout,
                             const ModelSettings& model, Device device)
    : WrappingNetwork(std::move(inner)), shape_(values_shape(layout, model)), device_(device) {
  WD_CHECK(inner_->outputs() == shape_.outputs(), "a network of ", inner_->outputs(), " outputs instead of ",
           shape_.outputs());
  if (!layout.as_table()) return;
  observed_per_unit_ = layout.all_agents;
  rows_per_unit_ = layout.num_agents;
}

std::int64_t ValuesNetwork::activation_size() const {
  const std::int64_t z = shape_.dueling ? std::int64_t{shape_.choices} * shape_.quantiles : 0;
  return inner_->activation_size() + z + (shape_.quantiles > 1 ? shape_.choices : 0);
}

std::unique_ptr<Network::Workspace> ValuesNetwork::make_workspace(std::int64_t rows,
                                                                  bool with_gradients) const {
  auto memory = std::make_unique<Memory>();
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(torch_device(device_));
  memory->inner = inner_->make_workspace(rows, with_gradients);
  memory->z = shape_.dueling ? make_output(rows, std::int64_t{shape_.choices} * shape_.quantiles, floats)
                             : memory->inner->output;
  memory->output = shape_.quantiles > 1 ? make_output(rows, shape_.choices, floats) : memory->z;
  if (with_gradients) memory->output_grad = make_output(rows, shape_.outputs(), floats);
  return memory;
}

at::Tensor ValuesNetwork::quantiles(const Workspace& workspace) const {
  return static_cast<const Memory&>(workspace).z.unflatten(1, {shape_.choices, shape_.quantiles});
}

void ValuesNetwork::forward(const NetworkInput& input, Workspace& workspace) const {
  auto& memory = static_cast<Memory&>(workspace);
  inner_->forward(input, *memory.inner);
  const Queue queue = current_queue(device_);
  const std::int64_t n = input.parts[0].size(0) / observed_per_unit_ * rows_per_unit_;
  if (shape_.dueling)
    dueling(queue, {shape_, n, rows_of<const float>(memory.inner->output), rows_of<float>(memory.z)});
  if (shape_.quantiles > 1)
    quantile_mean(queue, {shape_, n, rows_of<const float>(memory.z), rows_of<float>(memory.output)});
}

void ValuesNetwork::backward(const NetworkInput& input, const at::Tensor& output_grad, Workspace& workspace,
                             Gradient* gradient, std::span<const at::Tensor> part_grads) const {
  backward_from(output_grad, true, input, workspace, gradient, part_grads);
}

void ValuesNetwork::backward_quantiles(const NetworkInput& input, const at::Tensor& z_grad,
                                       Workspace& workspace, Gradient* gradient,
                                       std::span<const at::Tensor> part_grads) const {
  backward_from(z_grad, false, input, workspace, gradient, part_grads);
}

void ValuesNetwork::backward_from(const at::Tensor& grad, bool of_mean, const NetworkInput& input,
                                  Workspace& workspace, Gradient* gradient,
                                  std::span<const at::Tensor> part_grads) const {
  auto& memory = static_cast<Memory&>(workspace);
  const std::int64_t n = grad.size(0);
  const at::Tensor output_grad = memory.output_grad.narrow(0, 0, n);
  values_backward(current_queue(device_),
                  {shape_, n, rows_of<const float>(grad), of_mean, rows_of<float>(output_grad)});
  inner_->backward(input, output_grad, *memory.inner, gradient, part_grads);
}

}  // namespace wd
