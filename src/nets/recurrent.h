// recurrent.h: a network with memory: a recurrent cell between fully connected layers.
#pragma once

#include <memory>
#include <vector>

#include "kernels/cell.h"
#include "src/nets/linear.h"
#include "wd/detail/networks.h"
#include "wd/network.h"

namespace wd {

class RecurrentSettings final : public NetworkSettings {
 public:
  RecurrentSettings(const char* name, CellKind kind) : kind_(kind), name_(name) {}
  const char* name() const override { return name_; }
  std::unique_ptr<NetworkSettings> copy() const override {
    return std::make_unique<RecurrentSettings>(*this);
  }
  void describe(Fields& field) override;
  void take(const NetworkSettings& other) override;
  int state_size() const override { return cell().states() * width_; }
  bool is_module() const override { return false; }
  std::shared_ptr<Module> make(const ModuleShape& shape) const override;
  CellShape cell() const { return {.kind = kind_, .width = width_}; }
  int horizon() const { return horizon_; }

 private:
  CellKind kind_;
  const char* name_;
  int width_ = 64, horizon_ = 0;
};

// The memory is a cell (kernels/cell.h) that reads what layers before it compute, and whose h further layers
// read. It is float32 in all precisions; the layers around it, and with them its input, have the precision of
// any others. Parameters have the names of torch::nn::GRUCell and LSTMCell.
class RecurrentNetwork final : public Network {
 public:
  // `before` computes x of the cell for rows; its input is the first `parts` parts of the network's. `behind`
  // reads h, and then the parts that are left. tf32: for gradients of U on a GPU. Throws UsageError if the
  // device cannot hold a cell of this width.
  RecurrentNetwork(const RecurrentSettings& settings, std::unique_ptr<Network> before, std::size_t parts,
                   std::unique_ptr<Network> behind, int agents, Device device, bool tf32);

  int outputs() const override { return behind_->outputs(); }
  int state_size() const override { return shape_.states() * shape_.width; }
  std::int64_t num_parameters() const override { return begin_[3]; }
  void initialize(const at::Tensor& flat, InitMethod method, double gain, std::uint64_t seed) const override;
  Layer output_layer(const at::Tensor& flat) const override {
    return behind_->output_layer(section(flat, kBehind));
  }
  void bind(const at::Tensor& parameters, const at::Tensor& shadow) override;
  void parameters_changed() override;
  std::vector<NamedTensor> hidden_parameters() const override;
  at::Tensor gates(const Workspace& workspace) const override;
  std::unique_ptr<Workspace> make_workspace(std::int64_t rows, bool with_gradients) const override;
  std::unique_ptr<Gradient> make_gradient(const at::Tensor& flat) const override;
  void forward(const NetworkInput& input, Workspace& workspace) const override;
  void backward(const NetworkInput& input, const at::Tensor& output_grad, Workspace& workspace,
                Gradient* gradient, std::span<const at::Tensor> part_grads = {}) const override;
  void finish_gradient(const at::Tensor& derived, const at::Tensor& flat) const override {
    before_->finish_gradient(derived, section(flat, kBefore));
  }
  bool overwrites() const override { return before_->overwrites() && behind_->overwrites(); }
  double forward_flop() const override {
    return before_->forward_flop() + products() + behind_->forward_flop();
  }
  double backward_flop() const override {
    return before_->backward_flop() + 2.0 * products() + behind_->backward_flop();
  }
  std::int64_t activation_size() const override;

 private:
  struct Memory;
  struct Sums;
  enum Section { kBefore, kCell, kBehind };

  at::Tensor section(const at::Tensor& flat, Section k) const {
    return flat.narrow(0, begin_[k], begin_[k + 1] - begin_[k]);
  }
  // U and b in `flat`, if the cell has them.
  Layer cell_in(const at::Tensor& flat) const;
  double products() const {
    return shape_.has_products() ? 2.0 * agents_ * shape_.gates() * shape_.width * shape_.width : 0.0;
  }
  CellShape shape_of(const NetworkInput& input) const;
  NetworkInput behind_input(const NetworkInput& input, const Memory& memory) const;
  // The gradients of U and b, from those of y.
  void add_products(const Memory& memory, std::int64_t rows, const Layer& sums, bool add) const;
  void add_product(const at::Tensor& of_y, const at::Tensor& previous, const Memory& memory,
                   const Layer& sums, bool add) const;

  CellShape shape_;  // without rows
  int horizon_;
  std::unique_ptr<Network> before_, behind_;
  std::size_t parts_;
  int agents_;
  Device device_;
  std::array<std::int64_t, 4> begin_{};  // of the sections in flat memory
  Layer cell_;
  at::Tensor transposed_;  // U
  std::unique_ptr<GpuLinear> linear_;
};

}  // namespace wd
