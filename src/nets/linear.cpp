// linear.cpp: products of the members of a population as one batch.
#include "src/nets/linear.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "src/device/device.h"
#include "src/device/lockstep.h"
#include "src/device/tensor_device.h"

namespace wd {

MakeGpuLinear* make_gpu_linear = nullptr;

namespace {

// A product of one member. Those of alike shapes whose matrices are equally far apart are one batch.
class ProductLaunch final : public MemberLaunch {
 public:
  using Run = void(GpuLinear&, std::vector<at::Tensor>&);

  // kind: which product; flags included.
  ProductLaunch(GpuLinear& linear, int kind, std::vector<at::Tensor> operands, std::function<Run> run)
      : linear_(linear), kind_(kind), operands_(std::move(operands)), run_(std::move(run)) {}

  bool is_like(const MemberLaunch& other) const override {
    const auto& o = static_cast<const ProductLaunch&>(other);
    const auto alike = [](const at::Tensor& a, const at::Tensor& b) {
      return a.sizes() == b.sizes() && a.strides() == b.strides() && a.dtype() == b.dtype();
    };
    return kind_ == o.kind_ && operands_.back().dim() == 2 && stream_ == o.stream_ &&
           std::ranges::equal(operands_, o.operands_, alike);
  }

  void enqueue(const MemberLaunch* const* all, std::size_t count) const override {
    std::vector<at::Tensor> batch;
    for (std::size_t operand = 0; operand < operands_.size(); ++operand) {
      std::vector<at::Tensor> of_members;
      for (std::size_t k = 0; k < count; ++k) of_members.push_back(member(all, k).operands_[operand]);
      batch.push_back(batch_of(of_members));
      if (!batch.back().defined()) return one_by_one(all, count);
    }
    run_(linear_, batch);
  }

 private:
  static const ProductLaunch& member(const MemberLaunch* const* all, std::size_t k) {
    return *static_cast<const ProductLaunch*>(all[k]);
  }
  static void one_by_one(const MemberLaunch* const* all, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) {
      std::vector<at::Tensor> own = member(all, k).operands_;
      member(all, k).run_(member(all, k).linear_, own);
    }
  }

  GpuLinear& linear_;
  int kind_;
  std::vector<at::Tensor> operands_;
  std::function<Run> run_;
  void* stream_ = current_queue(device_holding(operands_[0])).stream;
};

class LinearTogether final : public GpuLinear {
 public:
  explicit LinearTogether(std::unique_ptr<GpuLinear> own) : own_(std::move(own)) {}

  void forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& y,
               bool relu) override {
    launch(relu ? 1 : 0, {x, weight, bias, y},
           [relu](GpuLinear& linear, auto& t) { linear.forward(t[0], t[1], t[2], t[3], relu); });
  }
  void multiply(const at::Tensor& x, const at::Tensor& weight, at::Tensor& y, bool add, bool relu) override {
    launch(2 + (add ? 1 : 0) + (relu ? 2 : 0), {x, weight, y},
           [add, relu](GpuLinear& linear, auto& t) { linear.multiply(t[0], t[1], t[2], add, relu); });
  }
  void backward_input(const at::Tensor& grad, const at::Tensor& weight, at::Tensor& below) override {
    launch(6, {grad, weight, below},
           [](GpuLinear& linear, auto& t) { linear.backward_input(t[0], t[1], t[2]); });
  }
  void backward_weight(const at::Tensor& grad, const at::Tensor& x, at::Tensor& weight_grad,
                       bool add) override {
    launch(add ? 8 : 7, {grad, x, weight_grad},
           [add](GpuLinear& linear, auto& t) { linear.backward_weight(t[0], t[1], t[2], add); });
  }

 private:
  void launch(int kind, std::vector<at::Tensor> operands, std::function<ProductLaunch::Run> run) {
    together->launch(ProductLaunch(*own_, kind, std::move(operands), std::move(run)));
  }

  std::unique_ptr<GpuLinear> own_;
};

}  // namespace

std::unique_ptr<GpuLinear> gpu_linear(at::Device device, bool tf32) {
  std::unique_ptr<GpuLinear> own = make_gpu_linear(device, tf32);
  if (together == nullptr) return own;
  return std::make_unique<LinearTogether>(std::move(own));
}

}  // namespace wd
