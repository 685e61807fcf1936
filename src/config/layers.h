// layers.h: the steps from sources to a configuration, each in a file of its own.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/config/document.h"
#include "src/config/reader.h"
#include "wd/config.h"

namespace wd::config {

// A file, or all overrides of the command line together.
struct Layer {
  Node tree;
  bool names_policies = false;  // its `policy` section may hold new policies; else only those that exist
};

// overrides.cpp: all overrides as one tree; a later one replaces an earlier one of the same path.
Layer override_layer(const std::vector<Override>& overrides, Problems& problems);

// Puts a value at a path of the tree, and makes the sections on the way.
void put(Node& tree, std::string_view path, Node value);

// warpdrive.cpp: the settings that an alias stands for, as a layer; empty for names that are no alias.
Layer alias_layer(const std::string& name, const Place& place);

// Rewrites keys that are WarpDrive's, not ours, and what one key of a layer says about another (num_episodes
// sets total_steps aside; reset_pool_size and starts choose reset). Keys without effect are removed, and
// named in `unused`.
void translate(Node& tree, const std::vector<std::string>& env_fields, Problems& problems,
               std::vector<std::string>& unused);

// warpdrive.cpp: where a file says what only WarpDrive's do: the place of it, and the words.
std::optional<std::pair<Place, std::string>> warpdrive_mark(const Node& tree,
                                                            const std::vector<std::string>& env_fields);
// Gives the file's tree WarpDrive's default for everything of trainer, policy and saving that it leaves out,
// and removes what its REINFORCE takes without effect: that is named in `unused`.
void fill_with_warpdrives_defaults(Node& tree, std::vector<std::string>& unused);

// policies.cpp: reads a layer's `policy` section, over the policies so far. Of those, the ones whose roles it
// gives to others disappear; `policies_are_defaults`: they are default_policies(), and all do.
void read_policies(const Spec& spec, const Layer& layer, bool policies_are_defaults, Config& config,
                   Problems& problems, Places& places);

// A policy of its own for each role, as where no file says anything.
std::vector<PolicySettings> default_policies(const Spec& spec);

// roles.cpp: the roles that a policy lists, or else those of its name; none where its name is no role's.
std::vector<std::string> roles_of(const PolicySettings& policy, const Spec& spec);
// Which policy acts for which role; fills roles and policy_of_role.
void assign_roles(const Spec& spec, Config& config, Problems& problems, const Places& places);

// validate.cpp: what one setting demands of another; fills total_steps and notes.
void validate(const Spec& spec, Config& config, Problems& problems, Places& places);

// Sets the place of a node and of all in it.
void set_place(Node& node, const Place& place);

// A problem at the place of a value, or without place where the default is in force.
void report(Problems& problems, const Places& places, const std::string& path, const std::string& value,
            const std::string& reason);

}  // namespace wd::config
