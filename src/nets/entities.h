// entities.h: a network that reads its observations as lists of things: it computes features of the nearest
// of each kind (kernels/entities.h), which any other network then reads instead of the observation.
#pragma once

#include <memory>

#include "kernels/entities.h"
#include "kernels/pool.h"
#include "src/nets/wrapping.h"

namespace wd {

// How to read the observations of a policy. Throws UsageError if the environment does not say how, or if its
// lists do not fit the observation.
EntityShape entity_shape(const PolicyLayout& layout, const ModelSettings& model);

// Reads features from the observations of a policy.
class EntityReader {
 public:
  EntityReader(const PolicyLayout& layout, const ModelSettings& model, Device device);

  const EntityShape& shape() const { return shape_; }
  bool reads_tables() const { return all_agents_ > 0; }
  // Number of rows that these observations describe, and where they are.
  std::int64_t rows_of(const at::Tensor& observation) const;
  ObservationSource source_of(const at::Tensor& observation) const;
  // features [rows, width or more] float32, found [rows, slots] int32; rounded: the features in bfloat16
  // instead, if it is defined. Enqueues on CUDA.
  void read(const at::Tensor& observation, const at::Tensor& features, const at::Tensor& found,
            const at::Tensor& rounded = {}) const;

 private:
  EntityShape shape_;
  Device device_;
  int all_agents_ = 0, rows_per_unit_ = 1;  // of a table; 0: rows
  at::Tensor agent_;                        // [A] int32: ids of the policy's agents, in a table
};

class EntitiesNetwork final : public WrappingNetwork {
 public:
  // The part of the input that a network reads instead of the observation.
  static InputPart part(const PolicyLayout& layout, const ModelSettings& model);

  // `inner` reads part() instead of the observation, rounded or not, and further parts as they are. `encoder`
  // computes the embeddings of things from encoder_part(); null if they are not pooled.
  EntitiesNetwork(std::unique_ptr<Network> inner, std::unique_ptr<Network> encoder,
                  const PolicyLayout& layout, const ModelSettings& model, Device device, bool rounded);

  static bool pools(const ModelSettings& model) { return model.pool != kNoPool || model.attention > 0; }
  static InputPart encoder_part(const PolicyLayout& layout, const ModelSettings& model);
  // Its outputs: an embedding, then a score for each head of attention.
  static int encoder_outputs(const ModelSettings& model) { return model.embedding + model.attention; }

  // The encoder's parameters come first.
  std::int64_t num_parameters() const override { return encoder_size() + inner_->num_parameters(); }
  void initialize(const at::Tensor& flat, InitMethod method, double gain, std::uint64_t seed) const override;
  Layer output_layer(const at::Tensor& flat) const override { return inner_->output_layer(of_inner(flat)); }
  void bind(const at::Tensor& parameters, const at::Tensor& shadow) override;
  void parameters_changed() override;
  std::vector<NamedTensor> hidden_parameters() const override;
  const Layer* head() const override { return inner_->head(); }
  int latent_size() const override { return inner_->latent_size(); }
  // Of tables: rows of observations are features' own size, and pooled embeddings depend on parameters.
  int feature_size() const override { return reader_.reads_tables() && !encoder_ ? shape_.width() : 0; }
  at::ScalarType feature_type() const override { return rounded_ ? at::kBFloat16 : at::kFloat; }
  at::Tensor latent(const Workspace& workspace) const override { return inner_->latent(inner_of(workspace)); }
  std::unique_ptr<Workspace> make_workspace(std::int64_t rows, bool with_gradients) const override;
  std::unique_ptr<Gradient> make_gradient(const at::Tensor& flat) const override;
  void forward(const NetworkInput& input, Workspace& workspace) const override;
  void backward(const NetworkInput& input, const at::Tensor& output_grad, Workspace& workspace,
                Gradient* gradient, std::span<const at::Tensor> part_grads = {}) const override;
  double forward_flop() const override;
  double backward_flop() const override;
  std::int64_t activation_size() const override;

 private:
  struct Memory;
  struct Sums;

  std::int64_t encoder_size() const { return encoder_ ? encoder_->num_parameters() : 0; }
  at::Tensor of_encoder(const at::Tensor& flat) const { return flat.narrow(0, 0, encoder_size()); }
  at::Tensor of_inner(const at::Tensor& flat) const {
    return flat.narrow(0, encoder_size(), inner_->num_parameters());
  }
  // The input of the inner network, for n rows.
  NetworkInput inner_input(const NetworkInput& input, const Memory& memory, std::int64_t n) const;

  // Writes pooled embeddings behind the features of n rows.
  void pool_things(const ObservationSource& source, std::int64_t n, Memory& memory) const;
  // Adds to the gradient of the encoder; and if `row_grad` is defined, to that of the observations.
  void pool_backward(const ObservationSource& source, std::int64_t n, Memory& memory, Gradient* gradient,
                     const at::Tensor& row_grad) const;

  std::unique_ptr<Network> encoder_;
  EntityReader reader_;
  const EntityShape& shape_;
  PoolShape pool_;
  Device device_;
  bool rounded_;
};

}  // namespace wd
