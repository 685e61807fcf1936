// model.h: networks whose parameters are one flat tensor, with its gradient: what one optimizer moves.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "wd/network.h"

namespace wd {

class Model {
 public:
  // Parameters are 0. `numbers`: how many learned numbers follow the parameters of the networks, such as the
  // deviations of a distribution. In bf16 there is a copy of all parameters in bfloat16, the shadow.
  Model(std::vector<MakeNetwork> networks, int numbers, Device device, Precision precision);
  Model(Model&&) noexcept = default;
  Model& operator=(Model&&) noexcept = default;

  // Call it if the networks differ in nothing but their parameters: then together() may compute them all.
  void join();
  // All networks at a time (Network::several()), or null.
  const Network* together() const { return together_.get(); }

  // A model of the same networks with parameters of its own, equal to these, and without gradients: a target.
  // Synchronizes on CUDA.
  Model like() const;

  const std::vector<std::unique_ptr<Network>>& networks() const { return networks_; }
  Network& network(std::size_t k) const { return *networks_[k]; }

  // All parameters, [P] float32: those of each network, then the numbers. Each begins at a multiple of 16
  // bytes; padding between tensors stays 0.
  const at::Tensor& parameters() const { return parameters_; }
  const at::Tensor& gradients() const { return gradients_; }  // [P]; undefined without gradients
  const at::Tensor& shadow() const { return shadow_; }        // [P] bfloat16, or undefined
  // [P + sums + 1] float32: gradients(), then space for numbers that are summed over ranks in the same
  // operation.
  at::Tensor all_reduce_buffer(int sums) const;
  // The section of network k in a tensor [P], and that of the numbers.
  at::Tensor section(const at::Tensor& flat, std::size_t k) const;
  at::Tensor numbers(const at::Tensor& flat) const;

  // Draws the parameters of all networks, each from another seed. `gain` is for their output layers.
  // Synchronizes on CUDA.
  void initialize(InitMethod method, double gain, std::uint64_t seed);
  // Moves the parameters of this target, which like() made, towards those of `other` (kernels/polyak.h).
  // Enqueues.
  void follow(const Model& other, float tau);
  // Views of the parameters of all networks and of the numbers: "NETWORK.layers.0.weight", ....
  std::vector<NamedTensor> named_parameters() const;

  // From now on there are no gradients.
  void freeze() { gradients_ = all_reduce_buffer_ = at::Tensor(); }

  // Call refresh_shadow() after changing parameters(), or shadow_is_written() if a kernel has updated
  // shadow() as well. Enqueue.
  void refresh_shadow();
  void shadow_is_written();

 private:
  Model(std::vector<MakeNetwork> networks, int numbers, Device device, Precision precision,
        bool with_gradients);

  std::vector<MakeNetwork> make_;
  std::vector<std::unique_ptr<Network>> networks_;
  std::unique_ptr<Network> together_;
  std::vector<std::int64_t> begin_;  // of each network's section, then of the numbers
  int num_numbers_;
  Device device_;
  Precision precision_;
  at::Tensor parameters_, shadow_, all_reduce_buffer_, gradients_;
};

// Bytes of a model of these networks and numbers on any device: parameters and in bf16 their shadow; and if
// it is learned, gradients and the optimizer's two moments.
double model_bytes(const std::vector<MakeNetwork>& networks, int numbers, Precision precision, bool learned);

}  // namespace wd
