// standardized.h: a network whose input is in units of the running mean and deviation of each column.
#pragma once

#include <memory>

#include "kernels/columns.h"
#include "src/nets/wrapping.h"

namespace wd {

ColumnsView columns_view(const at::Tensor& x);

class StandardizedNetwork final : public WrappingNetwork {
 public:
  // `inner` reads the first part of the input as "standardized", [n, columns] float32, and further parts as
  // they are. norm [scaled columns, 2] {mean, deviation}; columns behind the scaled ones stay as they are.
  StandardizedNetwork(std::unique_ptr<Network> inner, int columns, at::Tensor norm, Device device)
      : WrappingNetwork(std::move(inner)), columns_(columns), norm_(std::move(norm)), device_(device) {}
  static InputPart part(int columns) { return {"standardized", columns}; }

  Layer output_layer(const at::Tensor& flat) const override { return inner_->output_layer(flat); }
  const Layer* head() const override { return inner_->head(); }
  int latent_size() const override { return inner_->latent_size(); }
  at::Tensor latent(const Workspace& workspace) const override { return inner_->latent(inner_of(workspace)); }
  std::vector<at::Tensor> hidden(const Workspace& workspace) const override {
    return inner_->hidden(inner_of(workspace));
  }
  std::unique_ptr<Workspace> make_workspace(std::int64_t rows, bool with_gradients) const override;
  void forward(const NetworkInput& input, Workspace& workspace) const override;
  void backward(const NetworkInput& input, const at::Tensor& output_grad, Workspace& workspace,
                Gradient* gradient, std::span<const at::Tensor> part_grads = {}) const override;
  std::int64_t activation_size() const override { return inner_->activation_size() + columns_; }

 private:
  struct Memory;

  int columns_;
  at::Tensor norm_;
  Device device_;
};

}  // namespace wd
