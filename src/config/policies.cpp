// policies.cpp: reads the `policy` section, which has one section per policy, each with a model.
#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>

#include "src/base/join.h"
#include "src/base/name.h"
#include "src/base/suggest.h"
#include "src/config/layers.h"
#include "src/config/role_names.h"
#include "src/config/synonyms.h"

namespace wd::config {
namespace {

// Returns whether the name can be part of a path, a YAML key without quotes and a file name.
bool is_policy_name(std::string_view name) {
  const bool head = !name.empty() && (std::isalpha(static_cast<unsigned char>(name[0])) || name[0] == '_');
  return head && is_name(name) && name.find('.') == std::string_view::npos;
}

// The file that says by which algorithm the policy learns, or else that names the policy; empty: none yet.
std::string source_of(const PolicySettings& policy, const Places& places) {
  const std::string path = "policy." + policy.name;
  auto place = places.find(path + ".algorithm");
  if (place == places.end()) place = places.find(path);
  return place == places.end() ? "" : place->second.source;
}

// Settings that depend on the game and not on what learns: agents, what the network reads, and a network of
// the user's own, unless it has a state, which algorithms with replay refuse.
std::vector<std::string> kept_from(const PolicySettings& policy, const AlgorithmTraits& traits) {
  std::vector<std::string> kept = {
      "roles", "agents", "to_train", "model.reads", "model.normalize_input", "model.model_ckpt_filepath"};
  const auto keep = [&](const std::vector<std::string>& names) {
    for (const std::string& name : names) kept.push_back("model." + name);
  };
  if (policy.model.input != kChoiceInput || traits.output == PolicyOutput::kValues)
    keep({"input", "nearest", "half_distance", "pool", "attention", "embedding"});
  if (policy.model.network && (policy.model.state_size() == 0 || !traits.short_iterations)) {
    keep({"type", "sequence_length"});
    keep(names_of([&](Fields& fields) { policy.model.network->describe(fields); }));
  }
  return kept;
}

// Switches the policy to another algorithm with that algorithm's defaults. What was said of the previous
// algorithm is dropped: its settings, and those of the network that stand beside it in the same file.
Switch start_from(const std::string& algorithm, const Node& section, PolicySettings& policy, Places& places) {
  PolicySettings before = policy;
  policy.learn_by(algorithm);
  Switch done{.policy = policy.name,
              .before = before.algorithm,
              .source = source_of(policy, places),
              .asked = section.find("algorithm")->place};
  std::vector<FieldInfo> fields = fields_of(before);
  for (FieldInfo& field : fields_of(before.model)) {
    field.name = "model." + field.name;
    fields.push_back(std::move(field));
  }
  const std::vector<std::string> kept = kept_from(before, policy.algorithm->traits());
  Problems none;
  Node model;
  for (const FieldInfo& field : fields) {
    const auto place = places.find("policy." + policy.name + "." + field.name);
    if (place == places.end()) continue;
    const bool of_model = field.name.starts_with("model.");
    if (!contains(kept, field.name) && (!of_model || place->second.source == done.source)) {
      places.erase(place);
      if (field.name != "algorithm" && section.at(field.name) == nullptr) done.dropped.push_back(field.name);
    } else if (of_model) {
      Node value;
      parse_document(field.value, "", none, value);
      put(model, field.name.substr(sizeof "model"), std::move(value));
    }
  }
  Places nowhere;
  Reader reader(model, "", none, nowhere);
  policy.model.describe(reader);
  none.throw_if_any();
  return done;
}

// The algorithm that has this key; empty if none has. PPO comes before IPPO and MAPPO, which have its keys.
std::string algorithm_with(const std::string& key) {
  static const std::map<std::string, std::string> owners = [] {
    std::vector<std::string> names = algorithm_names();
    std::ranges::stable_sort(names, {}, &std::string::size);
    std::map<std::string, std::string> all;
    for (const std::string& name : names) {
      PolicySettings policy;
      policy.algorithm = AlgorithmChoice::named(name);
      for (const FieldInfo& field : fields_of(policy)) all.try_emplace(field.name, name);
    }
    return all;
  }();
  const auto found = owners.find(key);
  return found == owners.end() ? "" : found->second;
}

// Reports keys that another algorithm has and the policy's algorithm does not have.
void refuse_foreign_keys(const Node& section, PolicySettings& policy, Reader& reader, Problems& problems) {
  const std::vector<std::string> own = names_of(describe_of(policy));
  for (const Node::Entry& entry : section.entries) {
    if (contains(own, entry.key)) continue;
    const std::string name = algorithm_with(entry.key);
    if (name.empty() || !counted_otherwise(entry.key, own).empty()) continue;  // finish() says it
    problems.add(entry.key_place, "policy." + policy.name + "." + entry.key,
                 "is a key of " + name + ", and this policy learns by " + policy.algorithm->name() +
                     ": remove it, or set algorithm: " + name);
    reader.known(entry.key);
  }
}

// Reads the network. Another type starts from its defaults: what files below said of the one before is
// dropped.
void read_model(const Node& section, PolicySettings& policy, Problems& problems, Places& places,
                std::vector<std::string>& notes) {
  const std::string path = concat("policy.", policy.name, ".model");
  const std::vector<FieldInfo> before = fields_of(policy.model);
  Reader reader(section, path, problems, places);
  policy.model.describe(reader);
  reader.finish();
  const std::vector<FieldInfo> after = fields_of(policy.model);
  if (after.front().value == before.front().value) return;
  std::vector<std::string> dropped;
  for (const FieldInfo& field : before) {
    const auto place = places.find(concat(path, '.', field.name));
    const auto now = std::ranges::find(after, field.name, &FieldInfo::name);
    if (place == places.end() || section.find(field.name) != nullptr) continue;
    if (now != after.end() && now->value == field.value) continue;
    places.erase(place);
    dropped.push_back("model." + field.name);
  }
  if (!dropped.empty())
    notes.push_back(concat("policy \"", policy.name, "\" has a network of type ", after.front().value, " (",
                           printable(section.find("type")->place.brief(), 300),
                           ") and starts from its defaults; without effect, as said of ",
                           before.front().value, ": ", join(dropped)));
}

void read_policy(const Node& section, PolicySettings& policy, Problems& problems, Places& places,
                 std::vector<Switch>& switches, std::vector<std::string>& notes) {
  const std::string path = "policy." + policy.name;
  const Node* const asked = section.find("algorithm");
  if (asked != nullptr && asked->text != policy.algorithm->name() &&
      contains(algorithm_names(), asked->text)) {
    Switch done = start_from(asked->text, section, policy, places);
    if (!done.source.empty()) switches.push_back(std::move(done));
  }
  Reader reader(section, path, problems, places);
  policy.describe(reader);
  reader.known("model");
  refuse_foreign_keys(section, policy, reader, problems);
  reader.finish(names_of(describe_of(policy.model), path + ".model."));
  const Node* model = section.find("model");
  if (model == nullptr || model->kind == Node::Kind::kNull) return;
  if (!model->is_map())
    return problems.add(model->place, path + ".model = " + shown(*model), "must be a section");
  read_model(*model, policy, problems, places, notes);
}

// Returns the policy with that name. If there is none, adds it if `may_add`, and reports a problem otherwise.
PolicySettings* find_policy(const Node::Entry& entry, bool may_add, Config& config, Problems& problems) {
  const auto found = std::ranges::find(config.policies, entry.key, &PolicySettings::name);
  if (found != config.policies.end()) return &*found;
  const std::string path = "policy." + printable(entry.key);
  if (!may_add) {
    problems.add(entry.key_place, path,
                 "no policy of that name" + suggestion(entry.key, policy_names(config)));
    return nullptr;
  }
  if (!is_policy_name(entry.key)) {
    problems.add(entry.key_place, path,
                 "a policy's name must be a letter, then up to 99 letters, digits, _ and -");
    return nullptr;
  }
  PolicySettings& added = config.policies.emplace_back();
  added.name = entry.key;
  return &added;
}

// Adds a note if another policy replaces this one by taking its roles, and does not set an algorithm.
// Otherwise it may have switched to another one.
void note_gone(const PolicySettings& gone, const std::vector<std::string>& roles, const Spec& spec,
               Config& config, const Places& places, std::vector<Switch>& switches) {
  for (const PolicySettings& policy : config.policies) {
    const bool takes = policy.name != gone.name &&
                       std::ranges::any_of(roles_of(policy, spec),
                                           [&](const std::string& role) { return contains(roles, role); });
    if (!takes) continue;
    const std::string algorithm = policy.algorithm->name();
    const auto asked = places.find("policy." + policy.name + ".algorithm");
    if (asked == places.end()) {
      const auto place = places.find("policy." + gone.name);
      config.notes.push_back(
          concat("policy \"", policy.name, "\" takes the place of \"", gone.name, '"',
                 place == places.end() ? "" : " (" + printable(place->second.brief(), 300) + ")",
                 ", and not its settings: it starts from the defaults of ", algorithm));
    } else if (algorithm != gone.algorithm->name()) {
      switches.push_back({policy.name, gone.algorithm, source_of(gone, places), asked->second, {}});
    }
  }
}

// Removes from the policies that a section does not name the roles that its policies take. Policies without
// any remaining role are removed.
void give_way(const Spec& spec, const std::vector<std::string>& named, Config& config, Places& places,
              std::vector<Switch>& switches) {
  std::vector<std::string> taken, gone;
  for (const PolicySettings& policy : config.policies)
    if (contains(named, policy.name)) std::ranges::copy(roles_of(policy, spec), std::back_inserter(taken));
  for (PolicySettings& policy : config.policies) {
    if (contains(named, policy.name)) continue;
    const std::vector<std::string> roles = roles_of(policy, spec);
    std::vector<std::string> kept = roles;
    if (std::erase_if(kept, [&](const std::string& role) { return contains(taken, role); }) == 0) continue;
    if (kept.empty()) {
      note_gone(policy, roles, spec, config, places, switches);
      gone.push_back(policy.name);
    }
    policy.roles = kept;
  }
  std::erase_if(config.policies, [&](const PolicySettings& policy) { return contains(gone, policy.name); });
  for (const std::string& name : gone)
    std::erase_if(places,
                  [&](const auto& at) { return (at.first + ".").starts_with("policy." + name + "."); });
}

// If a section names all policies, they take its order.
void put_in_order(const std::vector<std::string>& named, std::vector<PolicySettings>& policies) {
  if (named.size() != policies.size()) return;
  std::ranges::sort(policies, {},
                    [&](const PolicySettings& policy) { return std::ranges::find(named, policy.name); });
}

}  // namespace

void read_policies(const Spec& spec, const Layer& layer, Config& config, Problems& problems, Places& places,
                   std::vector<Switch>& switches) {
  const Node* section = layer.tree.find("policy");
  if (section == nullptr) return;
  if (!section->is_map() || section->entries.empty())
    return problems.add(section->place, "policy = " + shown(*section), "must hold a section for each policy");
  if (layer.names_policies)  // instead of the defaults, which no file names
    std::erase_if(config.policies,
                  [&](const PolicySettings& policy) { return !places.contains("policy." + policy.name); });
  std::vector<std::string> named;
  for (const Node::Entry& entry : section->entries) {
    if (!entry.value.is_map() && entry.value.kind != Node::Kind::kNull) {
      problems.add(entry.value.place, "policy." + printable(entry.key) + " = " + shown(entry.value),
                   "must be a section; `policy` holds one for each policy");
      continue;
    }
    PolicySettings* policy = find_policy(entry, layer.names_policies, config, problems);
    if (policy == nullptr) continue;
    named.push_back(policy->name);
    read_policy(entry.value, *policy, problems, places, switches, config.notes);
    places["policy." + policy->name] = entry.key_place;
  }
  if (!layer.names_policies) return;
  give_way(spec, named, config, places, switches);
  put_in_order(named, config.policies);
}

}  // namespace wd::config
