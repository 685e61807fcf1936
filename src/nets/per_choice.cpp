// per_choice.cpp: writes a row for each choice, and runs the network on them.
#include "src/nets/per_choice.h"

#include <ATen/ATen.h>

#include <array>

#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "src/nets/standardized.h"
#include "wd/error.h"
#include "wd/tensor_rows.h"

namespace wd {

PerChoiceShape per_choice_shape(const PolicyLayout& layout) {
  const ChoiceFeatures& features = layout.choice_features;
  return {.columns = layout.observation_size,
          .choices = layout.action_space.choices(),
          .features = features.size,
          .first = features.first,
          .fixed = features.are_fixed()};
}

struct PerChoiceNetwork::Memory final : InnerMemory {
  at::Tensor rows;         // [rows * choices, width]
  at::Tensor row_grad;     // as rows, if there are gradients
  at::Tensor output_grad;  // [rows * choices, 1], if there are gradients

  std::unique_ptr<Workspace> view(std::int64_t first, std::int64_t n,
                                  const Workspace& scratch) const override {
    const std::int64_t choices = output.size(1);
    auto part = std::make_unique<Memory>(static_cast<const Memory&>(scratch));
    part->rows = rows.narrow(0, first * choices, n * choices);
    part->inner = inner->view(first * choices, n * choices, inner_of(scratch));
    part->output = output.narrow(0, first, n);
    return part;
  }
};

PerChoiceNetwork::PerChoiceNetwork(std::unique_ptr<Network> inner, const PolicyLayout& layout, Device device)
    : WrappingNetwork(std::move(inner)), shape_(per_choice_shape(layout)), device_(device) {
  WD_CHECK(inner_->outputs() == 1 && inner_->state_size() == 0, "a network of ", inner_->outputs(),
           " outputs instead of one, or with a state");
  if (shape_.fixed)
    fixed_ = at::tensor(layout.choice_features.fixed, at::TensorOptions().dtype(at::kFloat))
                 .to(torch_device(device));
}

std::unique_ptr<Network::Workspace> PerChoiceNetwork::make_workspace(std::int64_t rows,
                                                                     bool with_gradients) const {
  auto memory = std::make_unique<Memory>();
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(torch_device(device_));
  const std::int64_t all = rows * shape_.choices;
  memory->rows = make_output(all, shape_.width(), floats);
  memory->inner = inner_->make_workspace(all, with_gradients);
  memory->output = memory->inner->output.view({rows, shape_.choices});
  if (!with_gradients) return memory;
  memory->row_grad = make_output(all, shape_.width(), floats);
  memory->output_grad = make_output(all, 1, floats);
  return memory;
}

NetworkInput PerChoiceNetwork::inner_input(const Memory& memory, std::int64_t n) const {
  return {.parts = {memory.rows.narrow(0, 0, n * shape_.choices)}, .state = {}, .restarted = {}};
}

void PerChoiceNetwork::forward(const NetworkInput& input, Workspace& workspace) const {
  auto& memory = static_cast<Memory&>(workspace);
  const at::Tensor& x = input.parts[0];
  per_choice(current_queue(device_), {.shape = shape_,
                                      .x = columns_view(x),
                                      .rows = x.size(0),
                                      .fixed = fixed_.defined() ? fixed_.const_data_ptr<float>() : nullptr,
                                      .y = rows_of<float>(memory.rows)});
  inner_->forward(inner_input(memory, x.size(0)), *memory.inner);
}

void PerChoiceNetwork::backward(const NetworkInput& input, const at::Tensor& output_grad,
                                Workspace& workspace, Gradient* gradient,
                                std::span<const at::Tensor> part_grads) const {
  auto& memory = static_cast<Memory&>(workspace);
  const std::int64_t n = input.parts[0].size(0), N = shape_.choices;
  const at::Tensor of_choices = memory.output_grad.narrow(0, 0, n * N);
  of_choices.view({n, N}).copy_(output_grad.narrow(0, 0, n));  // without the padding of its rows
  const at::Tensor x_grad = part_grads.empty() ? at::Tensor() : part_grads[0];
  const std::array<at::Tensor, 1> row_grads = {x_grad.defined() ? memory.row_grad : at::Tensor()};
  inner_->backward(inner_input(memory, n), of_choices, *memory.inner, gradient, row_grads);
  if (!x_grad.defined()) return;
  per_choice_backward(current_queue(device_), {.shape = shape_,
                                               .rows = n,
                                               .y_grad = rows_of<const float>(memory.row_grad),
                                               .grad = rows_of<float>(x_grad)});
}

}  // namespace wd
