// layers.h: the steps from sources to a configuration. Each is implemented in the file that its comment
// names.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/config/document.h"
#include "src/config/reader.h"
#include "wd/config.h"

namespace wd::config {

// The settings of a file, or of all command line overrides together.
struct Layer {
  Node tree;
  // Whether its `policy` section may define new policies. Otherwise it may only change existing ones.
  bool names_policies = false;

  bool defines_policies() const { return names_policies && tree.find("policy") != nullptr; }
};

// overrides.cpp: returns all overrides as one tree. A later one replaces an earlier one with the same path.
Layer override_layer(const std::vector<Override>& overrides, Problems& problems);

// Stores a value at a path of the tree and creates the sections on the way.
void put(Node& tree, std::string_view path, Node value);

// Adds to the tree what only the defaults contain.
void fill(Node& tree, const Node& defaults);

// warpdrive.cpp: returns the settings that an alias implies as a layer. Empty for names that imply no
// settings.
Layer alias_layer(const std::string& name, const Place& place);

// Rewrites keys that only WarpDrive has, and adds what one key of a layer implies for another: num_episodes
// overrides total_steps; reset_pool_size and starts choose reset. Removes keys without effect and adds their
// names to `unused`.
void translate(Node& tree, const std::vector<std::string>& env_fields, Problems& problems,
               std::vector<std::string>& unused);

// warpdrive.cpp: returns place and text of the first setting that only files for WarpDrive have.
std::optional<std::pair<Place, std::string>> warpdrive_mark(const Node& tree,
                                                            const std::vector<std::string>& env_fields);
// Sets every key of trainer, policy and saving that the file omits to WarpDrive's default. Removes the keys
// that WarpDrive's REINFORCE accepts without effect and adds their names to `unused`.
void fill_with_warpdrives_defaults(Node& tree, std::vector<std::string>& unused);

// A policy that learns by another algorithm than a file before said.
struct Switch {
  std::string policy;
  AlgorithmChoice before;
  std::string source;                // of the algorithm before
  Place asked;                       // of the algorithm now
  std::vector<std::string> dropped;  // what was said of the algorithm before
};

// policies.cpp: applies a layer's `policy` section to the policies so far. Policies whose roles it assigns to
// others are removed, and so are those that no layer named, which are the defaults.
void read_policies(const Spec& spec, const Layer& layer, Config& config, Problems& problems, Places& places,
                   std::vector<Switch>& switches);

// A run of agents of one role.
struct AgentRange {
  int role = 0;   // index into Spec::roles
  int first = 0;  // id among the agents of all roles
  int count = 0;
};
// roles.cpp: what an entry of policy.NAME.roles or policy.NAME.agents names: "runner", "runner 7",
// "runner 0-49" within the role, "7" or "0-49" by ids, which may be of several roles. Throws UsageError
// with the reason if there are no such agents.
std::vector<AgentRange> parse_agents(const std::string& text, const Spec& spec);
// Returns the roles that a policy lists, or those of its agents, or the role with the policy's name if it
// lists none (all roles for "shared"). Empty if no role has that name.
std::vector<std::string> roles_of(const PolicySettings& policy, const Spec& spec);
// How many agents the policy acts for, after assign_agents().
int num_agents_of(const PolicySettings& policy, const Spec& spec);
// Determines which policy acts for which agents. Fills roles and seats.
void assign_agents(const Spec& spec, Config& config, Problems& problems, const Places& places);

// validate.cpp: checks settings against each other. Fills total_steps and notes.
void validate(const Spec& spec, Config& config, Problems& problems, Places& places);

// Returns the function that describes the settings, which must outlive it.
template <typename Settings>
Describe describe_of(Settings& settings) {
  return [&settings](Fields& fields) { settings.describe(fields); };
}

template <typename Settings>
std::vector<FieldInfo> fields_of(Settings settings) {
  return list_fields(describe_of(settings));
}

inline std::vector<std::string> names_of(const Describe& describe, const std::string& prefix = "") {
  std::vector<std::string> names;
  for (const FieldInfo& field : list_fields(describe)) names.push_back(prefix + field.name);
  return names;
}

// The sections that are settings by name, in the order of files.
inline std::vector<std::pair<std::string, Describe>> sections_of(Config& config) {
  return {{"env", describe_of(config.env)},       {"trainer", describe_of(config.trainer)},
          {"saving", describe_of(config.saving)}, {"eval", describe_of(config.eval)},
          {"play", describe_of(config.play)},     {"autoscale", describe_of(config.autoscale)}};
}

// Sets the place of a node and of all nodes in it.
void set_place(Node& node, const Place& place);

// Adds a problem at the place of a value, or without a place if the value is the default.
void report(Problems& problems, const Places& places, const std::string& path, const std::string& value,
            const std::string& reason);

}  // namespace wd::config
