// module_network.h: any LibTorch module as a network, with autograd's backward pass.
#pragma once

#include <optional>
#include <utility>

#include "wd/module.h"
#include "wd/network.h"

namespace wd {

class ModuleNetwork final : public Network {
 public:
  // Throws UsageError if the module has buffers, has parameters that are not float32, or returns an output of
  // the wrong shape.
  ModuleNetwork(const NetworkSettings& settings, const PolicyLayout& layout, ModuleShape shape,
                Device device);

  int outputs() const override { return shape_.outputs; }
  int state_size() const override { return settings_->state_size(); }
  std::int64_t num_parameters() const override;
  // The module's own constructor draws the parameters; `method` and `gain` are for Module::output_layer().
  void initialize(const at::Tensor& flat, InitMethod method, double gain, std::uint64_t seed) const override;
  Layer output_layer(const at::Tensor& flat) const override;
  void bind(const at::Tensor& parameters, const at::Tensor& shadow) override;
  std::vector<NamedTensor> hidden_parameters() const override;
  std::unique_ptr<Workspace> make_workspace(std::int64_t rows, bool with_gradients) const override;
  std::unique_ptr<Gradient> make_gradient(const at::Tensor& flat) const override;
  void forward(const NetworkInput& input, Workspace& workspace) const override;
  void backward(const NetworkInput& input, const at::Tensor& output_grad, Workspace& workspace,
                Gradient* gradient, std::span<const at::Tensor> part_grads = {}) const override;
  // Counts only the weight matrices: two operations per weight and row.
  double forward_flop() const override;
  double backward_flop() const override { return 2.0 * forward_flop(); }
  std::int64_t activation_size() const override { return shape_.outputs; }

 private:
  struct Memory;
  struct Sums;
  void check() const;
  // Nobody asks for the gradient of observations alone.
  bool has_part_gradients() const { return shape_.parts.size() > 1 || !shape_.parts[0].is_observation(); }
  void find_output_layer();
  // The output for these rows, computed step by step from the state of the input.
  at::Tensor unroll(const std::vector<at::Tensor>& parts, const NetworkInput& input) const;
  // Views of the parameters in flat memory, each at a multiple of 16 bytes.
  std::vector<at::Tensor> views(const at::Tensor& flat) const;

  std::unique_ptr<NetworkSettings> settings_;
  ModuleShape shape_;
  Device device_;
  int agents_;
  std::shared_ptr<Module> module_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_;
  std::optional<std::pair<std::size_t, std::size_t>> output_layer_;  // indices of its weight and bias
};

}  // namespace wd
