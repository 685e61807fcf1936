// entities.h: a network that reads its observations as lists of things: it computes features of the nearest of
// each kind (kernels/entities.h), which any other network then reads instead of the observation.
#pragma once

#include <memory>

#include "kernels/entities.h"
#include "wd/network.h"

namespace wd {

// How to read the observations of a policy. Throws UsageError if the environment does not say how, or if its
// lists do not fit the observation.
EntityShape entity_shape(const PolicyLayout& layout, const ModelSettings& model);

class EntitiesNetwork final : public Network {
 public:
  // The part of the input that a network reads instead of the observation.
  static InputPart part(const PolicyLayout& layout, const ModelSettings& model);

  // `inner` reads part() instead of the observation, and further parts as they are.
  EntitiesNetwork(std::unique_ptr<Network> inner, const PolicyLayout& layout, const ModelSettings& model,
                  Device device);

  int outputs() const override { return inner_->outputs(); }
  int state_size() const override { return inner_->state_size(); }
  std::int64_t num_parameters() const override { return inner_->num_parameters(); }
  void initialize(const at::Tensor& flat, InitMethod method, double gain, std::uint64_t seed) const override {
    inner_->initialize(flat, method, gain, seed);
  }
  void scale_output(const at::Tensor& flat, int output, double factor) const override {
    inner_->scale_output(flat, output, factor);
  }
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
  std::int64_t activation_size() const override {
    return inner_->activation_size() + shape_.width() + shape_.slots();
  }

 private:
  struct Memory;

  ObservationSource source_of(const at::Tensor& observation) const;
  std::int64_t rows_of(const at::Tensor& observation) const;
  // The input of the inner network, for n rows.
  NetworkInput inner_input(const NetworkInput& input, const Memory& memory, std::int64_t n) const;

  std::unique_ptr<Network> inner_;
  EntityShape shape_;
  Device device_;
  bool as_table_;
  int all_agents_, rows_per_unit_;
  at::Tensor agent_;  // [A] int32: ids of the policy's agents, if observations are tables
};

}  // namespace wd
