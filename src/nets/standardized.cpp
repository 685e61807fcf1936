// standardized.cpp: standardizes the input, and runs the network.
#include "src/nets/standardized.h"

#include <ATen/ATen.h>

#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "wd/tensor_rows.h"

namespace wd {

struct StandardizedNetwork::Memory final : InnerMemory {
  at::Tensor rows;  // [rows, columns] float32

  std::unique_ptr<Workspace> view(std::int64_t first, std::int64_t n,
                                  const Workspace& scratch) const override {
    auto part = std::make_unique<Memory>();
    part->rows = rows.narrow(0, first, n);
    part->inner = inner->view(first, n, inner_of(scratch));
    part->output = part->inner->output;
    return part;
  }
};

ColumnsView columns_view(const at::Tensor& x) {
  ColumnsView view{.stride = x.stride(0)};
  if (x.scalar_type() == at::kFloat) {
    view.floats = x.const_data_ptr<float>();
  } else {
    view.halves = static_cast<const std::uint16_t*>(x.const_data_ptr());
  }
  return view;
}

std::unique_ptr<Network::Workspace> StandardizedNetwork::make_workspace(std::int64_t rows,
                                                                        bool with_gradients) const {
  auto memory = std::make_unique<Memory>();
  memory->rows =
      make_output(rows, columns_, at::TensorOptions().dtype(at::kFloat).device(torch_device(device_)));
  memory->inner = inner_->make_workspace(rows, with_gradients);
  memory->output = memory->inner->output;
  return memory;
}

void StandardizedNetwork::forward(const NetworkInput& input, Workspace& workspace) const {
  auto& memory = static_cast<Memory&>(workspace);
  const at::Tensor& x = input.parts[0];
  standardize(current_queue(device_), {.x = columns_view(x),
                                       .rows = x.size(0),
                                       .columns = columns_,
                                       .num_scaled = static_cast<int>(norm_.size(0)),
                                       .norm = norm_.const_data_ptr<float>(),
                                       .y = rows_of<float>(memory.rows)});
  NetworkInput standardized = input;
  standardized.parts[0] = memory.rows.narrow(0, 0, x.size(0));
  inner_->forward(standardized, *memory.inner);
}

void StandardizedNetwork::backward(const NetworkInput& input, const at::Tensor& output_grad,
                                   Workspace& workspace, Gradient* gradient,
                                   std::span<const at::Tensor> part_grads) const {
  auto& memory = static_cast<Memory&>(workspace);
  NetworkInput standardized = input;
  standardized.parts[0] = memory.rows.narrow(0, 0, input.parts[0].size(0));
  inner_->backward(standardized, output_grad, *memory.inner, gradient, part_grads);
  if (part_grads.empty() || !part_grads[0].defined()) return;
  standardize_backward(current_queue(device_), {.rows = input.parts[0].size(0),
                                                .num_scaled = static_cast<int>(norm_.size(0)),
                                                .norm = norm_.const_data_ptr<float>(),
                                                .y = rows_of<const float>(memory.rows),
                                                .grad = rows_of<float>(part_grads[0])});
}

}  // namespace wd
