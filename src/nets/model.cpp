// model.cpp: the flat memory of several networks.
#include "wd/model.h"

#include <ATen/ATen.h>

#include "kernels/polyak.h"
#include "kernels/record.h"
#include "src/device/device.h"
#include "src/device/lockstep.h"
#include "src/device/tensor_device.h"
#include "wd/detail/blocks.h"
#include "wd/error.h"

namespace wd {

// Sections begin at multiples of 16 bytes.
static std::int64_t room_of(int numbers) { return round_up(numbers, 4); }

Model::Model(std::vector<MakeNetwork> networks, int numbers, Device device, Precision precision)
    : Model(std::move(networks), numbers, device, precision, true) {}

Model::Model(std::vector<MakeNetwork> networks, int numbers, Device device, Precision precision,
             bool with_gradients)
    : make_(std::move(networks)), num_numbers_(numbers), device_(device), precision_(precision) {
  std::int64_t size = 0;
  for (const MakeNetwork& make : make_) {
    networks_.push_back(make());
    begin_.push_back(size);
    size += networks_.back()->num_parameters();
  }
  begin_.push_back(size);
  size += room_of(numbers);
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(torch_device(device));
  parameters_ = zeros_together({size}, floats);
  if (precision == kBf16) shadow_ = zeros_together({size}, floats.dtype(at::kBFloat16));
  if (with_gradients) {
    all_reduce_buffer_ = zeros_together({size + kMaxSums + 1}, floats);
    gradients_ = all_reduce_buffer_.narrow(0, 0, size);
  }
  for (std::size_t k = 0; k < networks_.size(); ++k)
    networks_[k]->bind(section(parameters_, k), shadow_.defined() ? section(shadow_, k) : at::Tensor());
}

double model_bytes(const std::vector<MakeNetwork>& networks, int numbers, Precision precision, bool learned) {
  std::int64_t parameters = room_of(numbers);
  for (const MakeNetwork& make : networks) parameters += make()->num_parameters();
  const double copies = (learned ? 4 : 1) * sizeof(float) + (precision == kBf16 ? sizeof(std::uint16_t) : 0);
  return copies * static_cast<double>(parameters);
}

void Model::join() {
  if (networks_.size() < 2) return;
  together_ = networks_[0]->several(static_cast<int>(networks_.size()));
  if (together_) together_->bind(parameters_, shadow_);
}

Model Model::like() const {
  Model copy(make_, num_numbers_, device_, precision_, false);
  if (together_) copy.join();
  copy.parameters_.copy_(parameters_);
  copy.refresh_shadow();
  return copy;
}

at::Tensor Model::all_reduce_buffer(int sums) const {
  return all_reduce_buffer_.narrow(0, 0, parameters_.numel() + sums + 1);
}

at::Tensor Model::section(const at::Tensor& flat, std::size_t k) const {
  return flat.narrow(0, begin_[k], begin_[k + 1] - begin_[k]);
}

at::Tensor Model::numbers(const at::Tensor& flat) const {
  return flat.narrow(0, begin_.back(), num_numbers_);
}

void Model::initialize(InitMethod method, double gain, std::uint64_t seed) {
  const at::Tensor initial = at::zeros({parameters_.numel()}, at::kFloat);
  for (std::size_t k = 0; k < networks_.size(); ++k)
    networks_[k]->initialize(section(initial, k), method, gain, seed + k);
  parameters_.copy_(initial);
  refresh_shadow();
}

void Model::follow(const Model& other, float tau) {
  polyak(current_queue(device_), {.n = parameters_.numel(),
                                  .from = other.parameters_.const_data_ptr<float>(),
                                  .to = parameters_.mutable_data_ptr<float>(),
                                  .tau = tau});
  refresh_shadow();
}

std::vector<NamedTensor> Model::named_parameters() const {
  std::vector<NamedTensor> named;
  for (std::size_t k = 0; k < networks_.size(); ++k) {
    const std::string prefix = concat(k, '.');
    for (const NamedTensor& tensor : networks_[k]->hidden_parameters())
      named.push_back({concat(prefix, "layers.", tensor.name), tensor.tensor});
    if (const Layer* head = networks_[k]->head()) {
      named.push_back({prefix + "head.weight", head->weight});
      named.push_back({prefix + "head.bias", head->bias});
    }
  }
  if (num_numbers_ > 0) named.push_back({"numbers", numbers(parameters_)});
  return named;
}

void Model::refresh_shadow() {
  if (shadow_.defined()) shadow_.copy_(parameters_);
  shadow_is_written();
}

void Model::shadow_is_written() {
  for (const auto& network : networks_) network->parameters_changed();
}

}  // namespace wd
