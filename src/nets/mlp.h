// mlp.h: a multilayer perceptron over views of flat memory, with an explicit backward pass. The first layer
// may read tables.
#pragma once

#include <span>
#include <vector>

#include "kernels/chain.h"
#include "kernels/perceptron.h"
#include "src/nets/activation.h"
#include "src/nets/linear.h"
#include "src/nets/table_layer.h"
#include "wd/kernels/rows.h"
#include "wd/network.h"

namespace wd {

struct MlpShape {
  std::vector<InputPart> parts;  // of the input; the first layer has a weight for each
  std::vector<int> hidden;
  int outputs = 0;
  Activation activation = kRelu;
  bool layer_norm = false;
  Precision precision = kFp32;
  // Networks that are computed together, on a GPU (Network::several()); their tensors have one more dimension
  // in front if there are several.
  int copies = 1;

  // The row stride of a matrix with `columns` columns, in weights and, on a GPU, in activations: rows that
  // tensor cores read start at multiples of 16 bytes. In fp32 rows have no padding.
  std::int64_t padded(std::int64_t columns) const;
  std::int64_t num_parameters() const;
  // The widths of all layers, from the first part of the input to the output.
  std::vector<std::int64_t> widths() const;
  // Views of `flat` (parameters or gradients), in the order of layers.
  std::vector<Layer> bind(const at::Tensor& flat) const;
};

// The common part of the perceptrons of all devices and precisions.
class Mlp : public Network {
 public:
  // On a GPU rows are padded. In bf16 on a GPU, the activations of hidden layers and their gradients are
  // bfloat16, and so is the gradient of the output, if there are hidden layers.
  struct Memory final : Workspace {
    at::Tensor input;  // [rows, padded inputs] float32: observations that are stored in bfloat16
    // [rows, width] float32, where hidden[0] is bfloat16: the first layer's sums, and their gradient, if it
    // reads a table or numbers that are not rounded. If it reads a table in blocks: [units, sums of blocks].
    at::Tensor first;
    at::Tensor units;  // [replicas, width] float32: what a part per replica adds to sums, and its gradient
    // [A, width] float32: the same of a part per slot; and [kSlotParts * A, width] for gradients on a GPU.
    at::Tensor slots, slot_parts;
    std::vector<at::Tensor> hidden;  // [rows, width] per layer, after the activation
    std::vector<at::Tensor> hidden_grad;
    // With layer normalization, per hidden layer: [rows, width] float32, the sums and then the normalized
    // sums; and [rows] float32, what they were multiplied by.
    std::vector<at::Tensor> normalized, inverse_std;
    // [rows, width / 8] bytes: of the activations of the last hidden layer and of the one below it, if they
    // are of a chain.
    at::Tensor signs, below_signs;
    at::Tensor norm_parts;   // working memory of the gradients of scales and shifts, on a GPU
    at::Tensor bias_parts;   // the same of the gradients of biases
    at::Tensor sum_parts;    // the same of all gradients, if one kernel sums them
    at::Tensor output_grad;  // bf16: [rows, outputs], rounded

    std::unique_ptr<Workspace> view(std::int64_t begin, std::int64_t n,
                                    const Workspace& scratch) const override;
  };

  int outputs() const override { return shape_.outputs; }
  std::int64_t num_parameters() const override { return shape_.num_parameters(); }
  void initialize(const at::Tensor& flat, InitMethod method, double gain, std::uint64_t seed) const override;
  Layer output_layer(const at::Tensor& flat) const override { return shape_.bind(flat).back(); }
  void bind(const at::Tensor& parameters, const at::Tensor& shadow) override;
  void parameters_changed() override;
  std::vector<NamedTensor> hidden_parameters() const override;
  const Layer* head() const override { return &layers_.back(); }
  int latent_size() const override { return shape_.hidden.empty() ? 0 : shape_.hidden.back(); }
  at::Tensor latent(const Workspace& workspace) const override {
    return static_cast<const Memory&>(workspace).hidden.back().narrow(1, 0, latent_size());
  }
  std::vector<at::Tensor> hidden(const Workspace& workspace) const override;
  std::unique_ptr<Workspace> make_workspace(std::int64_t rows, bool with_gradients) const override;
  std::unique_ptr<Gradient> make_gradient(const at::Tensor& flat) const override;
  void forward(const NetworkInput& input, Workspace& workspace) const final;
  void backward(const NetworkInput& input, const at::Tensor& output_grad, Workspace& workspace,
                Gradient* gradient, std::span<const at::Tensor> part_grads = {}) const final;
  void finish_gradient(const at::Tensor& derived, const at::Tensor& flat) const override;
  double forward_flop() const override;
  double backward_flop() const override;
  std::int64_t activation_size() const override;

  Mlp(MlpShape shape, const PolicyLayout& layout, Device device);

 protected:
  struct LayerGradients final : Gradient {
    std::vector<Layer> layers;
  };

  using PartGrads = std::span<const at::Tensor>;

  virtual void run_forward(const NetworkInput& input, Memory& memory) const = 0;
  virtual void run_backward(const NetworkInput& input, const at::Tensor& output_grad, Memory& memory,
                            LayerGradients* gradient, PartGrads part_grads) const = 0;

  // Layer normalization of the first n rows of hidden layer l, from memory.normalized[l] to memory.hidden[l].
  void normalize(std::size_t l, std::int64_t n, Memory& memory) const;
  // grad [n, width]: the gradient of the normalized layer l becomes that of its sums. Adds the gradients of
  // its scale and shift, unless `gradient` is null.
  void normalize_backward(std::size_t l, const at::Tensor& grad, const Memory& memory,
                          LayerGradients* gradient) const;
  // Floating-point operations of the first layer for one replica, without a table's.
  double parts_flop() const;
  // Of a part whose rows are shared: where what it adds to sums is computed, and its gradient, if n rows of
  // agents share them; undefined for other parts.
  at::Tensor shared_rows(const InputPart& part, std::int64_t n, const Memory& memory) const;
  // Writes the row that a part per replica or per slot has in `shared` to all rows of agents that share it in
  // `sums`, or adds it.
  void spread(const InputPart& part, const at::Tensor& shared, const at::Tensor& sums, std::int64_t n,
              bool add) const;
  // Writes the sums of the gradients of rows of agents, n in all, to `units` and `slots` of the memory.
  void collect(const at::Tensor& grad, std::int64_t n, const Memory& memory) const;

  // Whether the last hidden layer and the output layer are a chain (kernels/chain.h), on a GPU that has the
  // shared memory for one.
  bool has_chain() const {
    const std::vector<int>& hidden = shape_.hidden;
    return shape_.precision == kBf16 && shape_.activation == kRelu && !shape_.layer_norm &&
           shape_.copies == 1 && hidden.size() > 1 && hidden.back() == hidden[hidden.size() - 2] &&
           ChainShape::has(hidden.back(), shape_.outputs);
  }

  // Whether one kernel can compute the whole backward pass (kernels/perceptron.h), on a GPU that has the
  // shared memory for it.
  PerceptronShape perceptron() const { return {shape_.parts[0].size, shape_.outputs}; }
  bool has_perceptron() const {
    return has_chain() && shape_.hidden.size() == 2 && shape_.hidden[0] == PerceptronShape::kWidth &&
           reads_one_part() && reads_observations() && perceptron().fits();
  }

  bool reads_one_part() const { return shape_.parts.size() == 1 && !shape_.parts[0].is_shared(); }
  bool reads_tables() const { return first_ != nullptr; }
  bool reads_blocks() const { return reads_tables() && first_->in_blocks(); }
  // Whether the first part of the input is rows of observations, which have padding, and in bf16 are rounded;
  // or of features that are stored like these.
  bool reads_observations() const {
    return (shape_.parts[0].is_observation() || shape_.parts[0].rounded) && !reads_tables();
  }
  std::int64_t rows_of(const NetworkInput& input) const {
    if (reads_tables()) return first_->rows_of(input.parts[0]);
    return input.parts[0].size(-2) * (shape_.parts[0].per_replica ? agents_ : 1);
  }

  MlpShape shape_;
  Device device_;
  int agents_;               // rows per replica and step
  bool chains_ = false;      // has_chain(), and this device can compute it
  bool perceptron_ = false;  // the same of has_perceptron()
  std::vector<Layer> layers_;
  std::vector<Layer> shadow_;          // bf16: the layers in bfloat16
  std::unique_ptr<TableLayer> first_;  // the first layer if observations are tables, otherwise null
};

// On the CPU, in float32. Precisions differ in the numbers that a layer multiplies and in how its results are
// stored.
class MlpCpu : public Mlp {
 public:
  using Mlp::Mlp;

 protected:
  // The numbers of the first part of the input, if it has rows.
  // NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter): callers keep their observation
  virtual const at::Tensor& input_of(const at::Tensor& observation, Memory&) const { return observation; }
  virtual const at::Tensor& weight_of(std::size_t l) const { return layers_[l].weight; }
  virtual const at::Tensor& bias_of(std::size_t l) const { return layers_[l].bias; }
  // Whether bfloat16 can represent all factors of the products of layer l.
  virtual bool multiplies_bf16(std::size_t) const { return false; }
  // Rounds n gradients of sums as they are stored.
  virtual void round_gradient(float*, std::int64_t) const {}
  // The gradient of the output as the products read it.
  // NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter): callers keep it
  virtual const at::Tensor& stored(const at::Tensor& output_grad, std::int64_t, Memory&) const {
    return output_grad;
  }

 private:
  void run_forward(const NetworkInput& input, Memory& memory) const final;
  void run_backward(const NetworkInput& input, const at::Tensor& output_grad, Memory& memory,
                    LayerGradients* gradient, PartGrads part_grads) const final;
  // The sums of the first layer, and the gradients of its parameters and of parts of the input.
  void first_forward(const NetworkInput& input, Memory& memory, std::int64_t n, const at::Tensor& sums) const;
  void first_backward(const NetworkInput& input, const at::Tensor& grad, const Memory& memory, std::int64_t n,
                      LayerGradients* gradient, PartGrads part_grads) const;
  const at::Tensor& part_weight(std::size_t k) const {
    return k == 0 ? weight_of(0) : layers_[0].further[k - 1];
  }
};

// On the CPU, with hidden layers in bfloat16.
//
// The GPU multiplies bfloat16 numbers and sums in float32. The product of two such numbers is exact in
// float32, so float32 products of rounded numbers give the same result, up to the order of summation; and so
// do the processor's own products of bfloat16 numbers, where it has them (kernels/matmul.h). These
// numbers are rounded: observations, and features of entities, unless things are pooled; weights; the biases
// and activations of hidden layers; and the gradients of all outputs and activations. Outputs and their
// biases, sums, gradients of weights, tables and the bias of a first layer that reads one are float32, and so
// are other parts of the input, with their weights; with such parts, or with layer normalization, the weights
// of a table too. So are layer normalization and the biases that it reads; its results are rounded like sums.
// A network without hidden layers computes in float32 from rounded observations.
class MlpBf16 final : public MlpCpu {
 public:
  using MlpCpu::MlpCpu;
  void bind(const at::Tensor& parameters, const at::Tensor& shadow) override;
  void parameters_changed() override;

 private:
  const at::Tensor& input_of(const at::Tensor& observation, Memory& memory) const override;
  const at::Tensor& weight_of(std::size_t l) const override {
    return (multiplies_bf16(l) ? rounded_layers_ : layers_)[l].weight;
  }
  const at::Tensor& bias_of(std::size_t l) const override {
    return (is_hidden(l) && !shape_.layer_norm ? rounded_layers_ : layers_)[l].bias;
  }
  bool multiplies_bf16(std::size_t l) const override {
    return l > 0 || (is_hidden(0) && reads_observations());
  }
  void round_gradient(float* grad, std::int64_t n) const override;
  const at::Tensor& stored(const at::Tensor& output_grad, std::int64_t n, Memory& memory) const override;
  bool is_hidden(std::size_t l) const { return l + 1 < layers_.size(); }

  at::Tensor rounded_shadow_, rounded_;  // the bfloat16 shadow, and the same numbers in float32
  std::vector<Layer> rounded_layers_;
};

// On a GPU, in any precision, with cuBLASLt; several networks too.
class MlpGpu final : public Mlp {
 public:
  MlpGpu(MlpShape shape, const PolicyLayout& layout, Device device);
  std::unique_ptr<Network> several(int count) const override;
  bool overwrites() const override { return !reads_tables() && !shape_.layer_norm; }
  // Weights' gradients are products of all rows, and 0 times such a number is NaN.
  bool shows_not_finite() const override { return reads_observations() && !shape_.parts[0].rounded; }

 private:
  void run_forward(const NetworkInput& input, Memory& memory) const override;
  void run_backward(const NetworkInput& input, const at::Tensor& output_grad, Memory& memory,
                    LayerGradients* gradient, PartGrads part_grads) const override;
  void first_forward(const NetworkInput& input, Memory& memory, std::int64_t n, const at::Tensor& sums,
                     bool relu) const;
  void first_backward(const NetworkInput& input, const at::Tensor& grad, const Memory& memory, std::int64_t n,
                      LayerGradients* gradient, PartGrads part_grads) const;
  // The input of layer l, the first part of the first layer's, with rows as long as those of its weight.
  at::Tensor input_of(std::size_t l, const NetworkInput& input, const Memory& memory, std::int64_t n) const;
  at::Tensor weight_of(std::size_t l) const;
  // Turns the gradient of outputs into that of sums, `to`, which may be the same matrix or undefined, and
  // writes that of the bias, if it is defined, or adds to it. activated: the outputs; undefined: the sums
  // themselves.
  void pass(const at::Tensor& grad, const at::Tensor& activated, const at::Tensor& to,
            const at::Tensor& bias_grad, bool add, const Memory& memory) const;
  // What pass() does with grad weight, the gradient of hidden layer l: as one kernel, where there is one for
  // such a product.
  void multiply_and_pass(const at::Tensor& grad, std::size_t l, LayerGradients* gradient, bool add,
                         const Memory& memory) const;
  HiddenGradientArgs product_over(const at::Tensor& grad, std::size_t l, LayerGradients* gradient, bool add,
                                  const Memory& memory) const;
  void chain_forward(std::int64_t n, const Memory& memory) const;
  void chain_backward(const at::Tensor& grad, LayerGradients* gradient, bool add, const Memory& memory) const;
  void perceptron_backward(const NetworkInput& input, const at::Tensor& output_grad, const Memory& memory,
                           LayerGradients& gradient) const;
  HiddenGradientArgs pass_over(const at::Tensor& grad, const at::Tensor& activated, const at::Tensor& to,
                               const at::Tensor& bias_grad, bool add, const Memory& memory) const;
  // Where the gradient of layer l's bias is summed; undefined if it is not, or follows from a table's.
  at::Tensor bias_gradient(std::size_t l, const LayerGradients* gradient) const {
    return gradient == nullptr || (l == 0 && reads_tables()) ? at::Tensor() : gradient->layers[l].bias;
  }
  // What multiplies part k of the input, and that part.
  at::Tensor part_weight(std::size_t k) const { return k == 0 ? weight_of(0) : layers_[0].further[k - 1]; }
  at::Tensor part_of(const NetworkInput& input, std::size_t k, const Memory& memory, std::int64_t n) const {
    return k == 0 ? input_of(0, input, memory, n) : input.parts[k];
  }

  // Whether the sums of the first layer are complete after the product of the last of several parts.
  bool ends_in_product() const { return shape_.parts.size() > 1 && !shape_.parts.back().is_shared(); }

  PolicyLayout layout_;
  std::unique_ptr<GpuLinear> linear_;
};

// sum[columns] += the first n rows of x, in order. On the CPU.
void add_columns(Rows<const float> x, std::int64_t n, std::int64_t columns, float* sum);

}  // namespace wd
