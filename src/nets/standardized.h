// standardized.h: a network whose input is in units of the running mean and deviation of each column.
#pragma once

#include <memory>

#include "kernels/columns.h"
#include "wd/network.h"

namespace wd {

ColumnsView columns_view(const at::Tensor& x);

class StandardizedNetwork final : public Network {
 public:
  // `inner` reads the first part of the input as "standardized", [n, columns] float32, and further parts as
  // they are. norm [scaled columns, 2] {mean, deviation}; columns behind the scaled ones stay as they are.
  StandardizedNetwork(std::unique_ptr<Network> inner, int columns, at::Tensor norm, Device device)
      : inner_(std::move(inner)), columns_(columns), norm_(std::move(norm)), device_(device) {}
  static InputPart part(int columns) { return {"standardized", columns}; }

  int outputs() const override { return inner_->outputs(); }
  int state_size() const override { return inner_->state_size(); }
  std::int64_t num_parameters() const override { return inner_->num_parameters(); }
  void initialize(const at::Tensor& flat, InitMethod method, double gain, std::uint64_t seed) const override {
    inner_->initialize(flat, method, gain, seed);
  }
  Layer output_layer(const at::Tensor& flat) const override { return inner_->output_layer(flat); }
  void bind(const at::Tensor& parameters, const at::Tensor& shadow) override {
    inner_->bind(parameters, shadow);
  }
  void parameters_changed() override { inner_->parameters_changed(); }
  std::vector<NamedTensor> hidden_parameters() const override { return inner_->hidden_parameters(); }
  const Layer* head() const override { return inner_->head(); }
  std::unique_ptr<Workspace> make_workspace(std::int64_t rows, bool with_gradients) const override;
  std::unique_ptr<Gradient> make_gradient(const at::Tensor& flat) const override {
    return inner_->make_gradient(flat);
  }
  void forward(const NetworkInput& input, Workspace& workspace) const override;
  void backward(const NetworkInput& input, const at::Tensor& output_grad, Workspace& workspace,
                Gradient* gradient, std::span<const at::Tensor> part_grads = {}) const override;
  void finish_gradient(const at::Tensor& derived, const at::Tensor& flat) const override {
    inner_->finish_gradient(derived, flat);
  }
  double forward_flop() const override { return inner_->forward_flop(); }
  double backward_flop() const override { return inner_->backward_flop(); }
  std::int64_t activation_size() const override { return inner_->activation_size() + columns_; }

 private:
  struct Memory;

  std::unique_ptr<Network> inner_;
  int columns_;
  at::Tensor norm_;
  Device device_;
};

}  // namespace wd
