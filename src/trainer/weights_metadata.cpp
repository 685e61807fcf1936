// weights_metadata.cpp: describes a policy in words for its weights file.
#include "src/trainer/weights_metadata.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "src/base/join.h"
#include "src/base/json.h"
#include "src/base/name.h"
#include "src/config/heads.h"
#include "src/nets/entities.h"
#include "src/nets/values.h"
#include "wd/error.h"

namespace wd {
namespace {

// The shortest text that reads back as the same number: "2", "inf".
std::string number(float value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

using nlohmann::json;

// [entry of the first thing, step to the next], or null.
json numbers(const EntityNumbers& numbers) {
  return numbers.exist() ? json::array({numbers.first, numbers.step}) : json();
}

json list(const EntityListShape& list) {
  json features = json::array();
  for (int f = 0; f < list.num_features; ++f) features.push_back(numbers(list.feature[f]));
  return {{"count", list.count},
          {"kinds", list.kinds},
          {"x", numbers(list.x)},
          {"y", numbers(list.y)},
          {"heading", numbers(list.heading)},
          {"kind", numbers(list.kind)},
          {"presence", numbers(list.presence)},
          {"features", features}};
}

PolicyLayout layout_of(const Config& config, const Spec& spec, const PolicySettings& policy) {
  RolloutShape rows = RolloutShape::of(spec, config, 1);
  rows.storage = {};
  const std::vector<PolicyLayout> layouts = policy_layouts(rows);
  return *std::ranges::find(layouts, policy.name, &PolicyLayout::name);
}

// How a network reads rows of observations as lists of things, in entries of a row.
std::string entities(const PolicyLayout& layout, const ModelSettings& model) {
  const EntityShape shape = entity_shape(layout, model);
  json own = json::array(), lists = json::array();
  for (int r = 0; r < shape.num_own; ++r) own.push_back({shape.own_begin[r], shape.own_count[r]});
  for (int l = 0; l < shape.num_lists; ++l) lists.push_back(list(shape.list[l]));
  json all = {{"own", own},
              {"lists", lists},
              {"nearest", model.nearest},
              {"half_distance", model.half_distance},
              {"mean", model.pool == kMeanPool || model.pool == kMeanAndMaxPool},
              {"max", model.pool == kMaxPool || model.pool == kMeanAndMaxPool},
              {"attention", model.attention},
              {"embedding", model.embedding},
              {"activation", kActivationNames[model.activation]}};
  if (shape.heading_cos >= 0) all["heading"] = {shape.heading_cos, shape.heading_sin};
  return dump(all);
}

// The streams that the networks read, in the order of their columns.
std::string streams(const PolicyLayout& layout, const ModelSettings& model) {
  json all = json::array();
  for (const StreamSpec& stream : layout.streams) {
    if (contains(model.reads, stream.name) || contains(model.critic_reads, stream.name))
      all.push_back({{"name", stream.name},
                     {"shape", stream.shape},
                     {"of", stream.of == StreamSpec::kReplica ? "replica" : "agent"}});
  }
  return dump(all);
}

// What the networks read besides the observation; a file of defaults does not say it.
void add_reads(TensorMetadata& metadata, const PolicyLayout& layout, const ModelSettings& model) {
  if (model.reads != ModelSettings{}.reads) metadata["reads"] = join(model.reads, ",");
  if (!model.critic_reads.empty()) metadata["critic_reads"] = join(model.critic_reads, ",");
  if (const std::string read = streams(layout, model); read != "[]") metadata["streams"] = read;
  if (contains(model.reads, InputPart::kAgentId) || contains(model.critic_reads, InputPart::kAgentId))
    metadata["agent_ids"] = std::to_string(layout.ids.count);
}

// How the values of a team's agents are mixed, and by which streams of replicas, one after another.
std::string mixer(const PolicyLayout& layout, const ModelSettings& model, const Mixer& mixer) {
  json all = {{"agents", layout.num_agents}, {"units", mixer.reads_state() ? mixer.units : 0}};
  for (const StreamSpec& stream : layout.streams)
    if (mixer.reads_state() && contains(model.critic_reads, stream.name))
      all["reads"].push_back({{"name", stream.name}, {"shape", stream.shape}});
  return dump(all);
}

// Where a network that computes the values of choices one by one finds the numbers that describe them.
std::string described_choices(const ChoiceFeatures& features) {
  json all = {{"size", features.size}};
  if (features.are_fixed()) {
    all["fixed"] = features.fixed;
  } else {
    all["first"] = features.first;
  }
  return dump(all);
}

}  // namespace

TensorMetadata weights_metadata(const Config& config, const Spec& spec, const PolicySettings& policy,
                                const StepCounts& counts) {
  const auto role = std::ranges::find(spec.roles, policy.roles.front(), &Role::name);
  WD_CHECK(role != spec.roles.end(), "policy ", policy.name, " acts for no role");
  TensorMetadata metadata{{"program", concat("wd ", WD_VERSION)},
                          {"environment", kept_name(config.name)},
                          {"policy", policy.name},
                          {"roles", join(policy.roles, ",")},
                          {"algorithm", policy.algorithm->name()},
                          {"iteration", std::to_string(counts.iteration)},
                          {"env_steps", std::to_string(counts.env_steps)},
                          {"observation_size", std::to_string(role->observation_size())}};
  metadata["distribution"] = Head::of(role->action, policy.model, policy.algorithm->traits().output).name;
  if (role->action.is_continuous()) {
    metadata["action_components"] = std::to_string(role->action.components());
    std::vector<std::string> low, high;
    for (const Bounds& bounds : role->action.bounds) {
      low.push_back(number(bounds.low));
      high.push_back(number(bounds.high));
    }
    metadata["action_low"] = join(low, ",");
    metadata["action_high"] = join(high, ",");
  } else {
    metadata["action_heads"] = join(role->action.heads, ",");
  }
  const ModelSettings& model = policy.model;
  metadata["model"] = model.network ? model.network->name() : "fully_connected";
  metadata["state_size"] = std::to_string(model.state_size());
  metadata["action_mask"] = role->action_mask ? "true" : "false";
  if (!model.is_module()) {
    metadata["fc_dims"] = join(model.fc_dims, ",");
    metadata["activation"] = kActivationNames[model.activation];
  }
  const PolicyLayout layout = layout_of(config, spec, policy);
  if (!policy.agents.empty()) metadata["agents"] = join(policy.agents, ",");
  const Mixer& mixed = policy.algorithm->traits().mixer;
  ModelSettings acting = model;
  if (mixed.kind != Mixer::kNone) {
    metadata["mixer"] = mixer(layout, model, mixed);
    acting.critic_reads.clear();
  }
  add_reads(metadata, layout, acting);
  if (ValuesNetwork::is_needed(model)) {
    metadata["dueling"] = model.dueling ? "true" : "false";
    metadata["quantiles"] = std::to_string(model.quantiles);
  }
  if (model.input == kChoiceInput) metadata["choices"] = described_choices(role->choice_features);
  if (model.input == kEntityInput) metadata["entities"] = entities(layout, model);
  return metadata;
}

}  // namespace wd
