// mlp.h: a multilayer perceptron over views of flat memory, with its backward pass written out.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "wd/config.h"

namespace wd {

// One layer's weight [out, in] and bias [out], views of a flat tensor.
struct Layer {
  at::Tensor weight, bias;
};

struct MlpShape {
  int inputs = 0;
  std::vector<int> hidden;
  int outputs = 0;
  Activation activation = kRelu;
  Precision precision = kFp32;

  // Entries from one row of `columns` to the next, in weights and on a GPU in activations: rows that tensor cores read start at
  // 16 bytes. In fp32 nothing lies between rows.
  std::int64_t padded(std::int64_t columns) const;
  // Floats of all layers; each weight and bias starts at a multiple of 16 bytes, in bf16 its shadow too.
  std::int64_t num_parameters() const;
  // Views of flat[offset ...] (parameters or gradients), in the order of layers.
  std::vector<Layer> bind(const at::Tensor& flat, std::int64_t offset) const;
};

// Activations of up to `rows` rows, allocated once and reused. On a GPU rows are padded, and in bf16 all but the last hidden layer's
// activations and all of their gradients are bfloat16.
struct MlpWorkspace {
  at::Tensor input;                // [rows, padded inputs] float32: observations that were stored in bfloat16
  std::vector<at::Tensor> hidden;  // [rows, width] a layer, after the activation
  at::Tensor output;               // [rows, outputs]
  std::vector<at::Tensor> hidden_grad;
  at::Tensor
      last_grad;    // [rows, width] float32, bf16 on a GPU: the last hidden layer's, before it is rounded
  at::Tensor ones;  // [rows], with gradients

  MlpWorkspace() = default;
  MlpWorkspace(const MlpShape& shape, std::int64_t rows, at::Device device, bool with_gradients);

  // Views of n rows' activations, with the other memory of `lane`.
  MlpWorkspace rows(std::int64_t first, std::int64_t n, const MlpWorkspace& lane) const;
};

class TableLayer;

// What a network reads: rows [n, inputs]; or, with a first layer for them, tables that n rows follow from.
struct MlpInput {
  at::Tensor observation;
  const TableLayer* first = nullptr;

  std::int64_t rows() const;
};

// Gradients of a network, to add to.
struct MlpGradients {
  std::vector<Layer> layers;
  at::Tensor first;  // with a TableLayer: what it makes its layer's gradient from
};

// output[0 : n] of n input rows, on the CPU. Allocates nothing.
void forward(const MlpShape& shape, const std::vector<Layer>& layers, const MlpInput& input,
             MlpWorkspace& workspace);

// Adds the gradients of n rows to `gradients`, given that of the output [n, outputs], which may be lost; call after forward() of the same
// rows.
void backward(const MlpShape& shape, const std::vector<Layer>& layers, const MlpInput& input,
              const at::Tensor& output_grad, MlpWorkspace& workspace, MlpGradients& gradients);

// sum[columns] += x[n, columns] over its rows, in order on the CPU.
void add_columns(const at::Tensor& x, const MlpWorkspace& workspace, at::Tensor& sum);

// Fills the layers: orthogonal, Xavier or torch's default; biases 0 (torch's default: uniform). `gain` is the output layer's.
void initialize(const MlpShape& shape, std::vector<Layer>& layers, InitMethod method, double gain,
                std::uint64_t seed);

}  // namespace wd
