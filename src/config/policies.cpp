// policies.cpp: the `policy` section: one section a policy, each with a model.
#include <algorithm>
#include <cctype>

#include "src/config/layers.h"
#include "src/suggest.h"
#include "wd/name.h"

namespace wd::config {
namespace {

// A name that can be a key of a path, a YAML key without quotes and a file's name.
bool is_policy_name(std::string_view name) {
  const bool head = !name.empty() && (std::isalpha(static_cast<unsigned char>(name[0])) || name[0] == '_');
  return head && is_name(name) && name.find('.') == std::string_view::npos;
}

void read_policy(const Node& section, PolicySettings& policy, Problems& problems, Places& places) {
  const std::string path = "policy." + policy.name;
  Reader reader(section, path, problems, places);
  policy.describe(reader);
  reader.known("model");
  std::vector<std::string> model_keys;
  for (const FieldInfo& field : list_fields([&](Fields& fields) { policy.model.describe(fields); })) {
    model_keys.push_back(path + ".model." + field.name);
  }
  reader.finish(model_keys);
  const Node* model = section.find("model");
  if (model == nullptr || model->kind == Node::Kind::kNull) return;
  if (!model->is_map())
    return problems.add(model->place, path + ".model = " + shown(*model), "must be a section");
  Reader model_reader(*model, path + ".model", problems, places);
  policy.model.describe(model_reader);
  model_reader.finish();
}

std::vector<std::string> names_of(const std::vector<PolicySettings>& policies) {
  std::vector<std::string> names;
  for (const PolicySettings& policy : policies) names.push_back(policy.name);
  return names;
}

// The policy of that name; one is made where `may_add`, else an unknown name is a problem.
PolicySettings* find_policy(const Node::Entry& entry, bool may_add, Config& config, Problems& problems) {
  for (PolicySettings& policy : config.policies) {
    if (policy.name == entry.key) return &policy;
  }
  const std::string path = "policy." + printable(entry.key);
  if (!may_add) {
    problems.add(entry.key_place, path,
                 "no policy of that name" + suggestion(entry.key, names_of(config.policies)));
    return nullptr;
  }
  if (!is_policy_name(entry.key)) {
    problems.add(entry.key_place, path,
                 "a policy's name must be a letter, then up to 99 letters, digits, _ and -");
    return nullptr;
  }
  config.policies.push_back(PolicySettings{});
  config.policies.back().name = entry.key;
  return &config.policies.back();
}

}  // namespace

void read_policies(const Layer& layer, Config& config, Problems& problems, Places& places) {
  const Node* section = layer.tree.find("policy");
  if (section == nullptr) return;
  if (!section->is_map() || section->entries.empty()) {
    return problems.add(section->place, "policy = " + shown(*section), "must hold a section for each policy");
  }
  if (layer.replaces_policies) {
    config.policies.clear();
    std::erase_if(places, [](const auto& entry) { return entry.first.starts_with("policy."); });
  }
  for (const Node::Entry& entry : section->entries) {
    if (!entry.value.is_map() && entry.value.kind != Node::Kind::kNull) {
      problems.add(entry.value.place, "policy." + printable(entry.key) + " = " + shown(entry.value),
                   "must be a section; `policy` holds one for each policy");
      continue;
    }
    PolicySettings* policy = find_policy(entry, layer.replaces_policies, config, problems);
    if (policy == nullptr) continue;
    places["policy." + policy->name] = entry.key_place;
    read_policy(entry.value, *policy, problems, places);
  }
}

std::vector<PolicySettings> default_policies(const Spec& spec) {
  std::vector<PolicySettings> policies;
  for (const Role& role : spec.roles) {
    policies.push_back(PolicySettings{});
    policies.back().name = role.name;
  }
  return policies;
}

}  // namespace wd::config
