// wrapping.h: a network around another one, which has all its parameters: what such networks share.
#pragma once

#include <memory>
#include <utility>

#include "wd/network.h"

namespace wd {

// Parameters, gradients and operations are those of `inner`, unless a derived class says otherwise.
class WrappingNetwork : public Network {
 public:
  int outputs() const override { return inner_->outputs(); }
  int state_size() const override { return inner_->state_size(); }
  std::int64_t num_parameters() const override { return inner_->num_parameters(); }
  void initialize(const at::Tensor& flat, InitMethod method, double gain, std::uint64_t seed) const override {
    inner_->initialize(flat, method, gain, seed);
  }
  void bind(const at::Tensor& parameters, const at::Tensor& shadow) override {
    inner_->bind(parameters, shadow);
  }
  void parameters_changed() override { inner_->parameters_changed(); }
  std::vector<NamedTensor> hidden_parameters() const override { return inner_->hidden_parameters(); }
  std::unique_ptr<Gradient> make_gradient(const at::Tensor& flat) const override {
    return inner_->make_gradient(flat);
  }
  void finish_gradient(const at::Tensor& derived, const at::Tensor& flat) const override {
    inner_->finish_gradient(derived, flat);
  }
  at::Tensor gates(const Workspace& workspace) const override { return inner_->gates(inner_of(workspace)); }
  double forward_flop() const override { return inner_->forward_flop(); }
  double backward_flop() const override { return inner_->backward_flop(); }

 protected:
  // The workspace of such a network, with that of the inner one.
  struct InnerMemory : Workspace {
    std::shared_ptr<Workspace> inner;
  };
  static const Workspace& inner_of(const Workspace& workspace) {
    return *static_cast<const InnerMemory&>(workspace).inner;
  }

  explicit WrappingNetwork(std::unique_ptr<Network> inner) : inner_(std::move(inner)) {}

  std::unique_ptr<Network> inner_;
};

}  // namespace wd
