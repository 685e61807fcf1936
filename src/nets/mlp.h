// mlp.h: a multilayer perceptron over views of flat memory, with an explicit backward pass. The first layer
// may read tables.
#pragma once

#include <vector>

#include "src/nets/activation.h"
#include "src/nets/linear.h"
#include "src/nets/network.h"
#include "src/nets/table_layer.h"

namespace wd {

struct MlpShape {
  int inputs = 0;
  std::vector<int> hidden;
  int outputs = 0;
  Activation activation = kRelu;
  bool layer_norm = false;
  Precision precision = kFp32;

  // The row stride of a matrix with `columns` columns, in weights and, on a GPU, in activations: rows that
  // tensor cores read start at multiples of 16 bytes. In fp32 rows have no padding.
  std::int64_t padded(std::int64_t columns) const;
  std::int64_t num_parameters() const;
  // The widths of all layers, from input to output.
  std::vector<std::int64_t> widths() const;
  // Views of `flat` (parameters or gradients), in the order of layers.
  std::vector<Layer> bind(const at::Tensor& flat) const;
};

// The common part of the perceptrons of all devices and precisions.
class Mlp : public Network {
 public:
  // On a GPU rows are padded. In bf16 on a GPU, the activations of all hidden layers except the last are
  // bfloat16, and so are the gradients of all of them.
  struct Memory final : Workspace {
    at::Tensor input;  // [rows, padded inputs] float32: observations that are stored in bfloat16
    at::Tensor first;  // [rows, width] float32: a table layer's output, if hidden[0] is bfloat16
    std::vector<at::Tensor> hidden;  // [rows, width] per layer, after the activation
    std::vector<at::Tensor> hidden_grad;
    // With layer normalization, per hidden layer: [rows, width] float32, the sums and then the normalized
    // sums; and [rows] float32, what they were multiplied by.
    std::vector<at::Tensor> normalized, inverse_std;
    at::Tensor norm_parts;  // working memory of the gradients of scales and shifts, on a GPU
    // [rows, width] float32, in bf16 on a GPU: the gradient of the last hidden layer, before rounding.
    at::Tensor last_grad;

    std::unique_ptr<Workspace> view(std::int64_t begin, std::int64_t n,
                                    const Workspace& scratch) const override;
  };

  int outputs() const override { return shape_.outputs; }
  std::int64_t num_parameters() const override { return shape_.num_parameters(); }
  void initialize(const at::Tensor& flat, InitMethod method, double gain, std::uint64_t seed) const override;
  void scale_output(const at::Tensor& flat, int output, double factor) const override;
  void bind(const at::Tensor& parameters, const at::Tensor& shadow) override;
  void parameters_changed() override;
  std::vector<NamedTensor> hidden_parameters() const override;
  const Layer* head() const override { return &layers_.back(); }
  std::unique_ptr<Workspace> make_workspace(std::int64_t rows, bool with_gradients) const override;
  std::unique_ptr<Gradient> make_gradient(const at::Tensor& flat) const override;
  void forward(const NetworkInput& input, Workspace& workspace) const final;
  void backward(const NetworkInput& input, const at::Tensor& output_grad, Workspace& workspace,
                Gradient& gradient) const final;
  void finish_gradient(const at::Tensor& derived, const at::Tensor& flat) const override;
  double forward_flop() const override;
  double backward_flop() const override;
  std::int64_t activation_size() const override;

  Mlp(MlpShape shape, const PolicyLayout& layout, Device device);

 protected:
  struct LayerGradients final : Gradient {
    std::vector<Layer> layers;
  };

  virtual void run_forward(const at::Tensor& observation, Memory& memory) const = 0;
  virtual void run_backward(const at::Tensor& observation, const at::Tensor& output_grad, Memory& memory,
                            LayerGradients& gradient) const = 0;

  // Layer normalization of the first n rows of hidden layer l, from memory.normalized[l] to memory.hidden[l].
  void normalize(std::size_t l, std::int64_t n, Memory& memory) const;
  // grad [n, width]: the gradient of the normalized layer l becomes that of its sums. Adds the gradients of
  // its scale and shift.
  void normalize_backward(std::size_t l, const at::Tensor& grad, const Memory& memory, Layer& gradient) const;
  bool reads_tables() const { return first_ != nullptr; }
  std::int64_t rows_of(const at::Tensor& observation) const {
    return reads_tables() ? first_->rows_of(observation) : observation.size(0);
  }

  MlpShape shape_;
  Device device_;
  int agents_;  // rows per replica and step
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
  const ActivationFunctions& activation() const { return functions_of(shape_.activation); }
  // The input of the first layer, if it reads rows.
  // NOLINTNEXTLINE(bugprone-return-const-ref-from-parameter): callers keep their observation
  virtual const at::Tensor& input_of(const at::Tensor& observation, Memory&) const { return observation; }
  virtual const at::Tensor& weight_of(std::size_t l) const { return layers_[l].weight; }
  virtual const at::Tensor& bias_of(std::size_t l) const { return layers_[l].bias; }
  // Whether bfloat16 can represent all factors of the products of layer l.
  virtual bool multiplies_bf16(std::size_t) const { return false; }
  // Applies the activation of hidden layer l to n sums in place.
  virtual void activate(std::size_t, float* x, std::int64_t n) const { activation().forward(x, n); }
  // grad *= derivative of the activation of hidden layer l.
  virtual void activate_backward(std::size_t, const float* activated, float* grad, std::int64_t n) const {
    activation().backward(activated, grad, n);
  }
  // Rounds n gradients of sums as they are stored.
  virtual void round_gradient(float*, std::int64_t) const {}

 private:
  void run_forward(const at::Tensor& observation, Memory& memory) const final;
  void run_backward(const at::Tensor& observation, const at::Tensor& output_grad, Memory& memory,
                    LayerGradients& gradient) const final;
};

// On the CPU, with hidden layers in bfloat16.
//
// The GPU multiplies bfloat16 numbers and sums in float32. The product of two such numbers is exact in
// float32, so float32 products of rounded numbers give the same result, up to the order of summation; and so
// do the processor's own products of bfloat16 numbers, where it has them (kernels/matmul.h). These
// numbers are rounded: observations; the weights of hidden layers; the biases and activations of hidden
// layers except the last, which the heads read; and the gradients of all activations. Heads, sums, gradients
// of weights and a first layer that reads tables are float32. So are layer normalization and the biases that
// it reads; its results are rounded like sums.
class MlpBf16 final : public MlpCpu {
 public:
  using MlpCpu::MlpCpu;
  void bind(const at::Tensor& parameters, const at::Tensor& shadow) override;
  void parameters_changed() override;

 private:
  const at::Tensor& input_of(const at::Tensor& observation, Memory& memory) const override;
  const at::Tensor& weight_of(std::size_t l) const override {
    return (l + 1 == layers_.size() ? layers_ : rounded_layers_)[l].weight;
  }
  const at::Tensor& bias_of(std::size_t l) const override {
    return (is_stored_as_bf16(l) && !shape_.layer_norm ? rounded_layers_ : layers_)[l].bias;
  }
  bool multiplies_bf16(std::size_t l) const override { return l + 1 < layers_.size(); }
  void activate(std::size_t l, float* x, std::int64_t n) const override;
  void activate_backward(std::size_t l, const float* activated, float* grad, std::int64_t n) const override;
  void round_gradient(float* grad, std::int64_t n) const override;
  bool is_stored_as_bf16(std::size_t l) const { return l + 2 < layers_.size(); }

  at::Tensor rounded_shadow_, rounded_;  // the bfloat16 shadow, and the same numbers in float32
  std::vector<Layer> rounded_layers_;
};

// On a GPU, in any precision, with cuBLASLt.
class MlpGpu final : public Mlp {
 public:
  MlpGpu(MlpShape shape, const PolicyLayout& layout, Device device);

 private:
  void run_forward(const at::Tensor& observation, Memory& memory) const override;
  void run_backward(const at::Tensor& observation, const at::Tensor& output_grad, Memory& memory,
                    LayerGradients& gradient) const override;
  at::Tensor input_of(std::size_t l, const at::Tensor& observation, const Memory& memory) const;
  at::Tensor weight_of(std::size_t l) const;

  std::unique_ptr<GpuLinear> linear_;
};

// sum[columns] += the rows of x[n, columns], in order. On the CPU.
void add_columns(const float* x, std::int64_t n, std::int64_t columns, float* sum);

}  // namespace wd
