// network.cpp: creates the networks that a configuration asks for.
#include "wd/network.h"

#include <ATen/ATen.h>

#include <cmath>

#include "src/base/join.h"
#include "src/config/heads.h"
#include "src/device/lockstep.h"
#include "src/nets/entities.h"
#include "src/nets/mixer.h"
#include "src/nets/mlp.h"
#include "src/nets/module_network.h"
#include "src/nets/per_choice.h"
#include "src/nets/recurrent.h"
#include "src/nets/standardized.h"
#include "src/nets/usage.h"
#include "src/nets/values.h"
#include "wd/error.h"

namespace wd {

namespace {

std::unique_ptr<Network> make_mlp(const PolicyLayout& layout, const ModelSettings& model,
                                  const std::vector<InputPart>& parts, int outputs, Device device,
                                  Precision precision) {
  const MlpShape shape{parts, model.fc_dims, outputs, model.activation, model.layer_norm, precision};
  if (device.is_cuda()) return std::make_unique<MlpGpu>(shape, layout, device);
  if (precision == kBf16) return std::make_unique<MlpBf16>(shape, layout, device);
  return std::make_unique<MlpCpu>(shape, layout, device);
}

// What is read late makes another row of every step, which needs a layer of its own behind the memory.
std::unique_ptr<Network> make_recurrent(const PolicyLayout& layout, const ModelSettings& model,
                                        const std::vector<InputPart>& parts, int outputs, Device device,
                                        Precision precision) {
  const auto& settings = static_cast<const RecurrentSettings&>(*model.network.operator->());
  const CellShape cell = settings.cell();
  const auto late = std::ranges::find_if(parts, &InputPart::late);
  ModelSettings before = model, behind;
  before.fc_dims.push_back(cell.width);
  std::vector<InputPart> read = {{"memory", cell.width}};
  read.insert(read.end(), late, parts.end());
  behind.fc_dims = late == parts.end()         ? std::vector<int>()
                   : model.critic_dims.empty() ? std::vector<int>{cell.width}
                                               : model.critic_dims;
  behind.activation = model.activation;
  return std::make_unique<RecurrentNetwork>(
      settings, make_mlp(layout, before, {parts.begin(), late}, cell.gates() * cell.width, device, precision),
      static_cast<std::size_t>(late - parts.begin()),
      make_mlp(layout, behind, read, outputs, device, precision), layout.num_agents, device,
      precision == kTf32);
}

std::unique_ptr<Network> make_plain(const PolicyLayout& layout, const ModelSettings& model,
                                    const std::vector<InputPart>& parts, int outputs, Device device,
                                    Precision precision) {
  if (!model.network) return make_mlp(layout, model, parts, outputs, device, precision);
  if (!model.is_module()) return make_recurrent(layout, model, parts, outputs, device, precision);
  return std::make_unique<ModuleNetwork>(*model.network.operator->(), layout,
                                         ModuleShape{parts.front().size, outputs, parts, layout.num_agents},
                                         device);
}

std::unique_ptr<Network> make_embedding(const PolicyLayout& layout, ModelSettings model, Device device,
                                        Precision precision) {
  if (!EntitiesNetwork::pools(model)) return nullptr;
  model.fc_dims = {model.embedding};
  return make_mlp(layout, model, {EntitiesNetwork::encoder_part(layout, model)},
                  EntitiesNetwork::encoder_outputs(model), device, precision);
}

// What reads the observation comes first: features of entities, then units, then the network itself.
std::unique_ptr<Network> make(const PolicyLayout& layout, const ModelSettings& model,
                              std::vector<InputPart> parts, int outputs, Device device, Precision precision,
                              const at::Tensor& input_norm) {
  const bool observes = parts[0].is_observation(), entities = observes && model.input == kEntityInput,
             standardizes = observes && input_norm.defined();
  if (entities) parts[0] = EntitiesNetwork::part(layout, model);
  const int columns = parts[0].size;
  if (standardizes) parts[0] = StandardizedNetwork::part(columns);
  parts[0].rounded =
      entities && !standardizes && precision == kBf16 && !model.is_module() && !EntitiesNetwork::pools(model);
  std::unique_ptr<Network> network = make_plain(layout, model, parts, outputs, device, precision);
  if (standardizes)
    network = std::make_unique<StandardizedNetwork>(std::move(network), columns, input_norm, device);
  if (!entities) return network;
  return std::make_unique<EntitiesNetwork>(std::move(network),
                                           make_embedding(layout, model, device, precision), layout, model,
                                           device, parts[0].rounded);
}

}  // namespace

Layer Network::output_layer(const at::Tensor&) const { return {}; }
at::Tensor Network::latent(const Workspace&) const { return {}; }

std::vector<at::Tensor> Network::hidden(const Workspace&) const { return {}; }
at::Tensor Network::gates(const Workspace&) const { return {}; }
std::unique_ptr<Network> Network::several(int) const { return nullptr; }
void Network::finish_gradient(const at::Tensor&, const at::Tensor&) const {}

MakeNetwork network_maker(const PolicyLayout& layout, const ModelSettings& model,
                          std::vector<InputPart> parts, int outputs, Device device, Precision precision,
                          const at::Tensor& input_norm) {
  if (parts.empty() || parts.size() > NetworkInput::kMaxParts)
    throw UsageError(concat("policy '", layout.name, "': a network has 1 to ", NetworkInput::kMaxParts,
                            " parts of its input, and not ", parts.size()));
  for (const InputPart& part : parts)
    WD_CHECK(!part.is_observation() || (&part == &parts[0] && part.size == layout.observation_size),
             "only the first part of an input may be the observation, of ", layout.observation_size,
             " numbers");
  return [=] { return make(layout, model, parts, outputs, device, precision, input_norm); };
}

std::vector<InputPart> input_parts(const PolicyLayout& layout, const std::vector<std::string>& names) {
  std::vector<InputPart> parts;
  for (const BufferField& field : buffer_fields()) {
    const std::string name = field.part_of(layout);
    if (name.empty() || !contains(names, name)) continue;
    if (field.stream < 0) {
      parts.push_back({name, layout.observation_size});
      continue;
    }
    const StreamSpec& stream = layout.streams[static_cast<std::size_t>(field.stream)];
    parts.push_back({name, stream.size(), stream.of == StreamSpec::kReplica, stream.shape});
  }
  // Behind the others, whose rows tell how many there are.
  if (contains(names, InputPart::kAgentId))
    parts.push_back({InputPart::kAgentId, layout.ids.count, false, {}, true});
  if (parts.size() != names.size() || parts.empty() || parts[0].per_slot)
    throw UsageError(concat("policy '", layout.name, "': a network cannot read [", join(names), "] here"));
  return parts;
}

namespace {

std::vector<MakeNetwork> make_actor_and_critic(const PolicyLayout& layout, const ModelSettings& model,
                                               PolicyOutput output, Device device, Precision precision,
                                               const at::Tensor& input_norm) {
  require_compatible(layout.name, usage_of(layout, model, output));
  const Head& head = Head::of(layout.action_space, model, output);
  const int columns = head.layout(layout.action_space).columns();
  const bool of_choices = head.value == Head::kOfBestChoice;
  const auto network = [&](int outputs, bool critic = false) {
    return network_maker(layout, model, input_parts(layout, model.read_by(critic)), outputs, device,
                         precision, input_norm);
  };
  if (of_choices && model.input == kChoiceInput) {
    const MakeNetwork inner =
        network_maker(layout, model, {PerChoiceNetwork::part(layout)}, 1, device, precision);
    return {[=] { return std::make_unique<PerChoiceNetwork>(inner(), layout, device); }};
  }
  if (of_choices && ValuesNetwork::is_needed(model)) {
    const MakeNetwork inner = network(values_shape(layout, model).outputs());
    return {[=] { return std::make_unique<ValuesNetwork>(inner(), layout, model, device); }};
  }
  if (!head.has_state_value()) return {network(columns)};
  if (!model.separate_value) return {network(columns + 1)};
  return {network(columns), network(1, true)};
}

}  // namespace

std::vector<MakeNetwork> make_networks(const PolicyLayout& layout, const ModelSettings& model,
                                       PolicyOutput output, Device device, Precision precision,
                                       const at::Tensor& input_norm, const Mixer& mixer) {
  std::vector<MakeNetwork> networks =
      make_actor_and_critic(layout, model, output, device, precision, input_norm);
  if (mixer.reads_state()) networks.push_back(mixer_maker(layout, model, mixer, device, precision));
  return networks;
}

std::vector<MakeNetwork> make_critics(const PolicyLayout& layout, const ModelSettings& model,
                                      const CriticShape& shape, Device device, Precision precision,
                                      const at::Tensor& input_norm) {
  const ActionSpace& actions = layout.action_space;
  ModelSettings own = model;
  if (!model.network && !model.critic_dims.empty()) own.fc_dims = model.critic_dims;
  std::vector<InputPart> parts = input_parts(layout, model.read_by(true));
  if (actions.is_continuous())
    parts.push_back({.name = "action", .size = actions.components(), .late = true});
  const int outputs = actions.is_continuous() ? shape.quantiles : actions.choices();
  return std::vector<MakeNetwork>(static_cast<std::size_t>(shape.count),
                                  network_maker(layout, own, parts, outputs, device, precision, input_norm));
}

at::Tensor make_output(std::int64_t rows, std::int64_t columns, const at::TensorOptions& options) {
  constexpr std::int64_t kFloats = 4;  // in 16 bytes
  const bool pads = !options.device().is_cpu() && columns > 1;
  const std::int64_t width = pads ? (columns + kFloats - 1) / kFloats * kFloats : columns;
  return zeros_together({rows, width}, options).narrow(1, 0, columns);
}

}  // namespace wd
