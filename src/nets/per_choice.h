// per_choice.h: a network that computes the value of each choice from the state and the description of this
// choice, so that it knows choices by what they are and not by their places.
#pragma once

#include <memory>

#include "kernels/per_choice.h"
#include "src/nets/values.h"

namespace wd {

// How to read the observations of a policy.
PerChoiceShape per_choice_shape(const PolicyLayout& layout);

class PerChoiceNetwork final : public WrappingNetwork {
 public:
  // What the inner network reads, one row for each choice of a row: the state, then the choice's features.
  static InputPart part(const PolicyLayout& layout) { return {"choice", per_choice_shape(layout).width()}; }

  // `inner` reads part() and has one output and no state.
  PerChoiceNetwork(std::unique_ptr<Network> inner, const PolicyLayout& layout, Device device);

  int outputs() const override { return shape_.choices; }
  std::vector<NamedTensor> hidden_parameters() const override { return parameters_with_head(*inner_); }
  std::unique_ptr<Workspace> make_workspace(std::int64_t rows, bool with_gradients) const override;
  void forward(const NetworkInput& input, Workspace& workspace) const override;
  void backward(const NetworkInput& input, const at::Tensor& output_grad, Workspace& workspace,
                Gradient* gradient, std::span<const at::Tensor> part_grads = {}) const override;
  double forward_flop() const override { return shape_.choices * inner_->forward_flop(); }
  double backward_flop() const override { return shape_.choices * inner_->backward_flop(); }
  std::int64_t activation_size() const override {
    return shape_.choices * (shape_.width() + inner_->activation_size());
  }

 private:
  struct Memory;

  // The rows of choices of n rows.
  NetworkInput inner_input(const Memory& memory, std::int64_t n) const;

  PerChoiceShape shape_;
  at::Tensor fixed_;  // [choices, features], if they are fixed
  Device device_;
};

}  // namespace wd
