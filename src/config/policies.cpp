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

// Returns the algorithm that a section names, or else the policy's.
std::string algorithm_of(const Node& section, PolicySettings policy) {
  Problems elsewhere;
  Places nowhere;
  Reader reader(section, "", elsewhere, nowhere);
  policy.describe(reader);
  return policy.algorithm->name();
}

std::vector<FieldInfo> fields_of(PolicySettings policy) {
  return list_fields([&](Fields& fields) { policy.describe(fields); });
}

// The file that says by which algorithm the policy learns, or else that names the policy; empty: none yet.
std::string source_of(const PolicySettings& policy, const Places& places) {
  const std::string path = "policy." + policy.name;
  auto place = places.find(path + ".algorithm");
  if (place == places.end()) place = places.find(path);
  return place == places.end() ? "" : place->second.source;
}

// Settings of the network that depend on the game and not on what learns: what it reads, and a network of the
// user's own, unless it has a state, which algorithms with replay refuse.
std::vector<std::string> kept_of_model(PolicySettings policy, const AlgorithmTraits& traits) {
  std::vector<std::string> names = {"reads", "normalize_input", "model_ckpt_filepath"};
  if (policy.model.input != kChoiceInput || traits.output == PolicyOutput::kValues)
    for (const char* name : {"input", "nearest", "half_distance", "pool", "attention", "embedding"})
      names.emplace_back(name);
  if (policy.model.network && (policy.model.state_size() == 0 || !traits.short_iterations)) {
    names.emplace_back("type");
    names.emplace_back("sequence_length");
    for (const FieldInfo& field :
         list_fields([&](Fields& fields) { policy.model.network->describe(fields); }))
      names.push_back(field.name);
  }
  return names;
}

// Writes fields of one network's settings into another's.
void copy_fields(ModelSettings from, const std::vector<std::string>& names, ModelSettings& to) {
  Node section;
  section.kind = Node::Kind::kMap;
  Problems none;
  Places nowhere;
  for (const FieldInfo& field : list_fields(describe_of(from))) {
    if (!contains(names, field.name)) continue;
    Node value;
    parse_document(field.value, "", none, value);
    section.entries.push_back({field.name, {}, std::move(value)});
  }
  Reader reader(section, "", none, nowhere);
  to.describe(reader);
  none.throw_if_any();
}

// Switches the policy to another algorithm with that algorithm's defaults. What was said of the previous
// algorithm is dropped: its settings, and those of the network that stand beside it in the same file.
// Settings that do not depend on the algorithm are kept: roles, agents, to_train, what the network reads.
void start_from(const std::string& algorithm, const Node& section, PolicySettings& policy, Places& places,
                std::vector<Switch>& switches) {
  const std::string path = "policy." + policy.name;
  PolicySettings fresh = policy;
  fresh.learn_by(algorithm);
  Switch done{.policy = policy.name,
              .before = policy.algorithm,
              .source = source_of(policy, places),
              .asked = section.find("algorithm")->place};
  for (const FieldInfo& field : fields_of(policy)) {
    if (contains({"roles", "agents", "to_train"}, field.name)) continue;
    if (places.erase(path + "." + field.name) == 0 || section.find(field.name) != nullptr) continue;
    if (field.name != "algorithm") done.dropped.push_back(field.name);
  }
  const std::vector<std::string> of_game = kept_of_model(policy, fresh.algorithm->traits());
  const Node* const own = section.find("model");
  std::vector<std::string> kept;
  for (const FieldInfo& field : list_fields(describe_of(policy.model))) {
    const auto place = places.find(path + ".model." + field.name);
    if (place == places.end()) continue;
    if (contains(of_game, field.name) || place->second.source != done.source) {
      kept.push_back(field.name);
    } else {
      places.erase(place);
      if (own == nullptr || !own->is_map() || own->find(field.name) == nullptr)
        done.dropped.push_back("model." + field.name);
    }
  }
  copy_fields(policy.model, kept, fresh.model);
  policy = fresh;
  if (!done.source.empty()) switches.push_back(std::move(done));
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
void refuse_foreign_keys(const Node& section, const PolicySettings& policy, Reader& reader,
                         Problems& problems) {
  std::vector<std::string> own;
  for (const FieldInfo& field : fields_of(policy)) own.push_back(field.name);
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

void read_policy(const Node& section, PolicySettings& policy, Problems& problems, Places& places,
                 std::vector<Switch>& switches) {
  const std::string path = "policy." + policy.name;
  const std::string algorithm = algorithm_of(section, policy);
  if (algorithm != policy.algorithm->name()) start_from(algorithm, section, policy, places, switches);
  Reader reader(section, path, problems, places);
  policy.describe(reader);
  reader.known("model");
  refuse_foreign_keys(section, policy, reader, problems);
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

// Returns the policy with that name. If there is none, adds it if `may_add`, and reports a problem otherwise.
PolicySettings* find_policy(const Node::Entry& entry, bool may_add, Config& config, Problems& problems) {
  for (PolicySettings& policy : config.policies) {
    if (policy.name == entry.key) return &policy;
  }
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
  config.policies.push_back(PolicySettings{});
  config.policies.back().name = entry.key;
  return &config.policies.back();
}

// Adds a note if another policy replaces this one by taking its roles, and does not set an algorithm.
// Otherwise it may have switched to another one.
void note_gone(const PolicySettings& gone, const std::vector<std::string>& roles, const Spec& spec,
               Config& config, const Places& places, std::vector<Switch>& switches) {
  for (const PolicySettings& policy : config.policies) {
    const std::string path = "policy." + policy.name;
    const std::vector<std::string> own = roles_of(policy, spec);
    const bool takes = policy.name != gone.name && std::any_of(own.begin(), own.end(), [&](const auto& role) {
                         return contains(roles, role);
                       });
    if (!takes) continue;
    const auto asked = places.find(path + ".algorithm");
    if (asked != places.end()) {
      if (std::string(policy.algorithm->name()) == gone.algorithm->name()) continue;
      switches.push_back({.policy = policy.name,
                          .before = gone.algorithm,
                          .source = source_of(gone, places),
                          .asked = asked->second});
      continue;
    }
    const auto place = places.find("policy." + gone.name);
    config.notes.push_back("policy \"" + policy.name + "\" takes the place of \"" + gone.name + "\"" +
                           (place == places.end() ? "" : " (" + printable(place->second.brief(), 300) + ")") +
                           ", and not its settings: it starts from the defaults of " +
                           std::string(policy.algorithm->name()));
  }
}

// Removes from the policies that a section does not name the roles that its policies take. Policies without
// any remaining role are removed.
void give_way(const Spec& spec, const std::vector<std::string>& named, Config& config, Places& places,
              std::vector<Switch>& switches) {
  std::vector<std::string> taken, gone;
  for (const PolicySettings& policy : config.policies) {
    if (!contains(named, policy.name)) continue;
    for (const std::string& role : roles_of(policy, spec)) taken.push_back(role);
  }
  for (PolicySettings& policy : config.policies) {
    if (contains(named, policy.name)) continue;
    const std::vector<std::string> roles = roles_of(policy, spec);
    std::vector<std::string> kept;
    std::copy_if(roles.begin(), roles.end(), std::back_inserter(kept),
                 [&](const std::string& role) { return !contains(taken, role); });
    if (kept.size() == roles.size()) continue;
    if (kept.empty()) {
      note_gone(policy, roles, spec, config, places, switches);
      gone.push_back(policy.name);
    }
    policy.roles = kept;
  }
  std::erase_if(config.policies, [&](const PolicySettings& policy) { return contains(gone, policy.name); });
  for (const std::string& name : gone) {
    places.erase("policy." + name);
    std::erase_if(places, [&](const auto& entry) { return entry.first.starts_with("policy." + name + "."); });
  }
}

// If a section names all policies, they take its order.
void put_in_order(const std::vector<std::string>& named, std::vector<PolicySettings>& policies) {
  if (named.size() != policies.size()) return;
  const auto position = [&](const PolicySettings& policy) {
    return std::find(named.begin(), named.end(), policy.name);
  };
  std::sort(policies.begin(), policies.end(),
            [&](const PolicySettings& a, const PolicySettings& b) { return position(a) < position(b); });
}

}  // namespace

void read_policies(const Spec& spec, const Layer& layer, bool policies_are_defaults, Config& config,
                   Problems& problems, Places& places, std::vector<Switch>& switches) {
  const Node* section = layer.tree.find("policy");
  if (section == nullptr) return;
  if (!section->is_map() || section->entries.empty()) {
    return problems.add(section->place, "policy = " + shown(*section), "must hold a section for each policy");
  }
  if (layer.names_policies && policies_are_defaults) config.policies.clear();
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
    read_policy(entry.value, *policy, problems, places, switches);
    places["policy." + policy->name] = entry.key_place;
  }
  if (!layer.names_policies) return;
  give_way(spec, named, config, places, switches);
  put_in_order(named, config.policies);
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
