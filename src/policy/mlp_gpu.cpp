// mlp_gpu.cpp: the layers one by one, through cuBLASLt. Rows are multiplied whole, with the zeros of their padding.
#include "src/policy/mlp_gpu.h"

#include <ATen/ATen.h>

#include "src/policy/table_layer.h"
namespace wd {

namespace {

at::Tensor top(const at::Tensor& tensor, std::int64_t rows) { return tensor.narrow(0, 0, rows); }

// A view of rows with some of what lies behind their ends.
at::Tensor with_columns(const at::Tensor& x, std::int64_t columns) {
  return x.as_strided({x.size(0), columns}, {x.stride(0), 1});
}

// What layer l reads: rows as long as those of its weight.
at::Tensor input_of(const MlpShape& shape, const Layer& layer, std::size_t l, const MlpInput& input,
                    const MlpWorkspace& workspace) {
  const bool widened = shape.precision == kBf16 && shape.hidden.empty();
  const at::Tensor x = l > 0     ? top(workspace.hidden[l - 1], input.rows())
                       : widened ? top(workspace.input, input.rows())
                                 : input.observation;
  return with_columns(x, layer.weight.stride(0));
}

// The weight that a layer multiplies with, whole rows.
at::Tensor weight_of(const MlpShape& shape, const std::vector<Layer>& layers,
                     const std::vector<Layer>& shadow, std::size_t l) {
  const at::Tensor& weight = (shape.precision == kBf16 && l + 1 < layers.size() ? shadow : layers)[l].weight;
  return with_columns(weight, weight.stride(0));
}

}  // namespace

void forward_on_gpu(CudaLinear& linear, const MlpShape& shape, const std::vector<Layer>& layers,
                    const std::vector<Layer>& shadow, const MlpInput& input, MlpWorkspace& workspace) {
  const std::int64_t n = input.rows();
  if (shape.precision == kBf16 && shape.hidden.empty())
    top(workspace.input, n).copy_(with_columns(input.observation, workspace.input.size(1)));
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const bool head = l + 1 == layers.size();
    const at::Tensor rows = top(head ? workspace.output : workspace.hidden[l], n);
    at::Tensor y = with_columns(rows, layers[l].weight.size(0));
    const bool bf16 = y.scalar_type() == at::kBFloat16, relu = !head && shape.activation == kRelu;
    if (l == 0 && input.first != nullptr) {
      input.first->forward(input.observation, y, relu);
    } else {
      linear.forward(input_of(shape, layers[l], l, input, workspace), weight_of(shape, layers, shadow, l),
                     (bf16 ? shadow : layers)[l].bias, y, relu);
    }
    if (!head && shape.activation == kTanh) at::tanh_(y);
  }
}

void backward_on_gpu(CudaLinear& linear, const MlpShape& shape, const std::vector<Layer>& layers,
                     const std::vector<Layer>& shadow, const MlpInput& input, const at::Tensor& output_grad,
                     MlpWorkspace& workspace, MlpGradients& gradients) {
  const std::int64_t n = input.rows();
  at::Tensor grad = output_grad;
  for (std::size_t l = layers.size(); l-- > 0;) {
    if (l == 0 && input.first != nullptr)
      return input.first->backward(input.observation, grad, gradients.first);
    Layer& gradient = gradients.layers[l];
    at::Tensor weight_grad = with_columns(gradient.weight, gradient.weight.stride(0));
    linear.backward_weight(grad, input_of(shape, layers[l], l, input, workspace), weight_grad, gradient.bias);
    if (l == 0) break;
    const bool rounded_here = shape.precision == kBf16 && l + 1 == layers.size();
    at::Tensor below = top(workspace.hidden_grad[l - 1], n);
    at::Tensor product = rounded_here ? top(workspace.last_grad, n) : below;
    linear.backward_input(grad, weight_of(shape, layers, shadow, l), product);
    const at::Tensor activated = top(workspace.hidden[l - 1], n);
    shape.activation == kRelu ? at::threshold_backward_out(product, product, activated, 0)
                              : at::tanh_backward_out(product, product, activated);
    if (rounded_here) below.copy_(product);
    grad = with_columns(below, layers[l - 1].weight.size(0));
  }
}

}  // namespace wd
