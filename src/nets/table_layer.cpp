// table_layer.cpp: the tensors that the kernels' arguments point to.
#include "src/nets/table_layer.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "wd/error.h"

namespace wd {

namespace {

// Parts of the units on a GPU: as many blocks as about 128 multiprocessors run at once. A block
// has 32 outputs and 8 columns of the table.
int parts_of(const TableShape& shape) {
  // In bfloat16 a range of agents is a block, and few of them take many parts, which are memory.
  if (shape.row_ranges > 0) return std::clamp(128 / shape.row_ranges, 1, 16);
  const auto pieces = [](int n, int size) { return (n + size - 1) / size; };
  const int blocks = pieces(shape.width, 32) * pieces(shape.table.columns(), 8) * shape.groups();
  const int warps = std::min(shape.ranges(), TableShape::kGroupRanges);
  return std::clamp(128 * (TableShape::kGroupRanges / warps) / blocks, 1, 256);
}

at::Tensor ints(const std::vector<int>& values, at::Device place) {
  return at::tensor(values, at::TensorOptions().dtype(at::kInt)).to(place);
}

}  // namespace

TableLayer::TableLayer(const PolicyLayout& layout, std::int64_t width, Device device, bool bfloat16)
    : device_(device), bfloat16_(bfloat16) {
  const at::Device place = torch_device(device);
  shape_.table = layout.table;
  shape_.agents = layout.all_agents;
  shape_.rows = layout.num_agents;
  shape_.width = static_cast<int>(width);
  if (bfloat16 && device.is_cuda()) {
    shape_.first_range = layout.agent.front() / TableShape::kRangeAgents;
    shape_.row_ranges = layout.agent.back() / TableShape::kRangeAgents + 1 - shape_.first_range;
  }
  shape_.parts = device.is_cuda() ? parts_of(shape_) : 1;
  std::vector<int> upto;
  for (int k = 0; k < shape_.agents; ++k)
    upto.push_back(static_cast<int>(std::upper_bound(layout.agent.begin(), layout.agent.end(), k) -
                                    layout.agent.begin()));
  between_ = layout.agent.back() - layout.agent.front();
  agent_ = ints(layout.agent, place);
  upto_ = ints(upto, place);
  shape_.agent = agent_.const_data_ptr<int>();
  shape_.upto = upto_.const_data_ptr<int>();
}

void TableLayer::bind(const Layer& layer) {
  layer_ = layer;
  weight_ = at::zeros({shape_.weight_rows(), shape_.width}, layer.weight.options());
  if (in_blocks()) words_ = at::zeros({shape_.words()}, weight_.options().dtype(at::kInt));
}

// The first row has N - 1 entries of each feature, and one entry changes from each row to the next. The
// gradient has as many terms: for each agent, those of the rows before its own place and of the rows behind
// it.
double TableLayer::forward_flop() const {
  const double entries = shape_.agents - 1.0 + between_;
  return 2.0 * shape_.width * (shape_.table.features * entries + shape_.table.own * shape_.rows);
}

double TableLayer::backward_flop() const {
  const double entries = shape_.agents - 1.0 + between_;
  const double shared = shape_.table.relative + shape_.table.own + 1;
  return 2.0 * shape_.width * (shape_.table.features * entries + shared * shape_.rows);
}

TableWeightsArgs TableLayer::weights_args(const Layer& layer) const {
  TableWeightsArgs args;
  args.shape = shape_;
  args.layer_weight = layer.weight.mutable_data_ptr<float>();
  args.layer_bias = layer.bias.mutable_data_ptr<float>();
  args.stride = layer.weight.stride(0);
  return args;
}

void TableLayer::refresh() {
  TableWeightsArgs args = weights_args(layer_);
  args.weight = weight_.mutable_data_ptr<float>();
  args.rounds = bfloat16_;
  if (in_blocks()) args.words = reinterpret_cast<std::uint32_t*>(words_.mutable_data_ptr<int>());
  table_weights(current_queue(device_), args);
}

at::Tensor TableLayer::make_gradient() const {
  return at::zeros({shape_.gradient_rows(), shape_.width}, weight_.options());
}

TableLayerArgs TableLayer::args(const at::Tensor& tables, const at::Tensor& y) const {
  TableLayerArgs args;
  args.shape = shape_;
  args.units = tables.size(0) / shape_.agents;
  args.table = tables.const_data_ptr<float>();
  args.table_stride = tables.stride(0);
  args.weight = weight_.const_data_ptr<float>();
  if (in_blocks()) {
    args.y_halves = static_cast<std::uint16_t*>(y.mutable_data_ptr());
    args.words = reinterpret_cast<const std::uint32_t*>(words_.const_data_ptr<int>());
  } else {
    args.y = y.mutable_data_ptr<float>();
  }
  args.y_stride = y.stride(0);
  return args;
}

void TableLayer::forward(const at::Tensor& tables, const at::Tensor& y, bool relu) const {
  TableLayerArgs forward = args(tables, y);
  forward.relu = relu;
  table_forward(current_queue(device_), forward);
}

void TableLayer::backward(const at::Tensor& tables, const at::Tensor& y_grad, const at::Tensor& sums,
                          const at::Tensor& gradient) const {
  TableLayerArgs backward = args(tables, y_grad);
  if (in_blocks()) backward.sums = sums.mutable_data_ptr<float>();
  backward.gradient = gradient.mutable_data_ptr<float>();
  table_backward(current_queue(device_), backward);
}

void TableLayer::write_gradient(const at::Tensor& gradient, const Layer& layer_gradient) const {
  TableWeightsArgs args = weights_args(layer_gradient);
  args.gradient = gradient.mutable_data_ptr<float>();
  table_gradient(current_queue(device_), args);
}

}  // namespace wd
