// network.cpp: creates the networks that a configuration asks for.
#include "src/nets/network.h"

#include "src/nets/mlp.h"
#include "src/nets/module_network.h"

namespace wd {

namespace {

std::unique_ptr<Network> make_mlp(const PolicyLayout& layout, const ModelSettings& model, int outputs,
                                  Device device, Precision precision) {
  const MlpShape shape{layout.observation_size, model.fc_dims, outputs, model.activation, precision};
  if (device.is_cuda()) return std::make_unique<MlpGpu>(shape, layout, device);
  if (precision == kBf16) return std::make_unique<MlpBf16>(shape, layout, device);
  return std::make_unique<MlpCpu>(shape, layout, device);
}

std::unique_ptr<Network> make(const PolicyLayout& layout, const ModelSettings& model, int outputs,
                              Device device, Precision precision) {
  if (!model.network) return make_mlp(layout, model, outputs, device, precision);
  return std::make_unique<ModuleNetwork>(*model.network.operator->(), layout,
                                         ModuleShape{layout.observation_size, outputs}, device);
}

}  // namespace

void Network::scale_output(const at::Tensor&, int, double) const {}
void Network::finish_gradient(const at::Tensor&, const at::Tensor&) const {}

ActorCritic make_networks(const PolicyLayout& layout, const ModelSettings& model, Device device,
                          Precision precision) {
  const int columns = layout.action_space.choices() + layout.action_space.components();
  if (!model.separate_value) return {make(layout, model, columns + 1, device, precision), nullptr};
  return {make(layout, model, columns, device, precision), make(layout, model, 1, device, precision)};
}

}  // namespace wd
