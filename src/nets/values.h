// values.h: a network that computes the values of choices in parts: the value of the state and advantages
// (dueling), or quantiles of each value, whose mean is the value.
#pragma once

#include <memory>

#include "kernels/values.h"
#include "src/nets/wrapping.h"

namespace wd {

// A network's parameters with those of its output layer, "head.weight" and "head.bias", for a network whose
// outputs are not the rows of that layer.
std::vector<NamedTensor> parameters_with_head(const Network& network);

// How the values of a policy's choices follow from the outputs of its network. Throws UsageError if the
// action has too many heads.
ValuesShape values_shape(const PolicyLayout& layout, const ModelSettings& model);

class ValuesNetwork final : public WrappingNetwork {
 public:
  // Whether the values of choices are computed in parts. Otherwise, they are the outputs of a plain network.
  static bool is_needed(const ModelSettings& model) { return model.dueling || model.quantiles > 1; }
  // The network of a policy (Model::network()) as one with quantiles; null if it is a plain one.
  static const ValuesNetwork* of(const Network& network) {
    return dynamic_cast<const ValuesNetwork*>(&network);
  }

  // `inner` reads the observation and has values_shape(layout, model).outputs() outputs.
  ValuesNetwork(std::unique_ptr<Network> inner, const PolicyLayout& layout, const ModelSettings& model,
                Device device);

  int num_quantiles() const { return shape_.quantiles; }  // K
  // Z, [rows of the workspace, N choices of all heads, K quantiles] float32, written by forward() in the rows
  // of its input. A row is contiguous; rows may be padded. The output is its mean over quantiles.
  at::Tensor quantiles(const Workspace& workspace) const;
  // backward() from the gradient of Z, [n, N, K] float32 with contiguous rows, which may be overwritten.
  void backward_quantiles(const NetworkInput& input, const at::Tensor& z_grad, Workspace& workspace,
                          Gradient* gradient, std::span<const at::Tensor> part_grads = {}) const;

  int outputs() const override { return shape_.choices; }
  std::vector<NamedTensor> hidden_parameters() const override { return parameters_with_head(*inner_); }
  std::vector<at::Tensor> hidden(const Workspace& workspace) const override {
    return inner_->hidden(inner_of(workspace));
  }
  std::unique_ptr<Workspace> make_workspace(std::int64_t rows, bool with_gradients) const override;
  void forward(const NetworkInput& input, Workspace& workspace) const override;
  void backward(const NetworkInput& input, const at::Tensor& output_grad, Workspace& workspace,
                Gradient* gradient, std::span<const at::Tensor> part_grads = {}) const override;
  std::int64_t activation_size() const override;

 private:
  struct Memory;

  // `grad`: of Z, or of its means.
  void backward_from(const at::Tensor& grad, bool of_mean, const NetworkInput& input, Workspace& workspace,
                     Gradient* gradient, std::span<const at::Tensor> part_grads) const;

  ValuesShape shape_;
  int observed_per_unit_ = 1, rows_per_unit_ = 1;  // of a table: its rows, and those of the output
  Device device_;
};

}  // namespace wd
