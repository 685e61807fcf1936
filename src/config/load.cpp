// load.cpp: loads and checks a configuration, layer by layer.
#include <algorithm>
#include <system_error>

#include "src/base/join.h"
#include "src/base/name.h"
#include "src/base/printable.h"
#include "src/base/suggest.h"
#include "src/config/layers.h"
#include "src/config/role_names.h"
#include "wd/detail/networks.h"

namespace wd {
namespace config {
namespace {

namespace fs = std::filesystem;

// The requested environment under the name that was used, and the place of the request.
struct Request {
  std::string name;
  Place place;
};

// Returns the `name` of a file. Empty if it has none.
Request file_name(const Node& tree, Problems& problems) {
  const Node* node = tree.find("name");
  if (node == nullptr) return {};
  if (node->kind == Node::Kind::kScalar && is_environment_name(node->text)) return {node->text, node->place};
  problems.add(node->place, "name = " + shown(*node), "must be the name of an environment");
  return {};
}

// Whether `name` in a file means this environment. One from a source file has its name or its path there.
bool is_named(const std::string& name, const std::string& environment) {
  return kept_name(canonical_environment(name)) == kept_name(environment) ||
         (is_source_file(environment) && name == fs::path(environment).stem());
}

Request requested(const ConfigSources& sources, const Node& file, Problems& problems) {
  Request named = file_name(file, problems);
  problems.throw_if_any();
  if (sources.env.empty() && named.name.empty()) {
    throw ConfigError({sources.file.empty()
                           ? "no environment: give --env NAME or --config FILE"
                           : sources.file + ": no environment: give --env NAME or name: in the file"});
  }
  if (sources.env.empty()) return named;
  if (!is_environment_name(sources.env)) {
    if (is_source_file(sources.env))
      throw UsageError(
          concat("--env ", printable(sources.env),
                 ": the path of an environment must be UTF-8 without quotes, backslashes and control "
                 "characters: rename it"));
    if (sources.env.find(':') == std::string::npos) check_name("environment", sources.env);
    throw UsageError(concat("--env ", printable(sources.env),
                            ": an environment in Python is gym:ID, pettingzoo:MODULE or MODULE:FUNCTION, "
                            "without spaces and quotes"));
  }
  const std::string wanted = canonical_environment(sources.env);
  if (!named.name.empty() && !is_named(named.name, wanted)) {
    problems.add(named.place, "name = " + named.name, "but --env asks for " + sources.env);
    problems.throw_if_any();
  }
  const bool file_is_closer =
      canonical_environment(sources.env) == sources.env && !named.name.empty() && !is_source_file(wanted);
  return file_is_closer ? named : Request{sources.env, {"--env", 0, 0}};
}

// Returns NAME.yaml in the first folder that has it, otherwise the environment's own file, otherwise "".
std::string shipped_file(const std::string& name, const ConfigSources& sources,
                         const EnvironmentAccess& access) {
  if (!sources.shipped) return "";
  // Environments in Python have their defaults in one file, one from a source file has them beside it.
  const std::string file = is_name(name) ? name + ".yaml" : "python.yaml";
  std::error_code error;
  if (!is_source_file(name))
    for (const std::filesystem::path& folder : sources.search) {
      const std::filesystem::path path = folder / file;
      if (std::filesystem::is_regular_file(path, error)) return path.string();
    }
  return std::filesystem::is_regular_file(access.config, error) ? access.config : "";
}

class Loader {
 public:
  Loader(const ConfigSources& sources, const EnvironmentLookup& lookup)
      : sources_(sources), lookup_(lookup) {}

  Config load() {
    collect_layers();
    for (Layer& layer : layers_) translate(layer.tree, env_fields_, problems_, unused_);
    for (const Layer& layer : layers_) read_sections(layer);
    const bool env_is_good = problems_.empty();
    if (env_is_good) spec_ = checked_spec();
    if (env_is_good && !shipped_.empty()) leave_out_other_roles(layers_.front());
    for (const Role& role : spec_.roles) {  // the defaults: one policy per role
      PolicySettings& policy = config_.policies.emplace_back();
      policy.name = role.name;
      if (!access_.algorithm.empty()) policy.learn_by(access_.algorithm);
    }
    const bool have_policies = env_is_good || std::ranges::any_of(layers_, &Layer::defines_policies);
    for (Layer& layer : layers_) {
      if (&layer == &layers_.back() && !sources_.algorithm.empty()) put_algorithm(layer);
      if (have_policies) read_policies(spec_, layer, config_, problems_, places_, switches_);
    }
    for (const Layer& layer : layers_) {
      read_opponents(layer);
      if (const Node* const node = layer.tree.find("members")) read_members(*node, "");
    }
    check_members();
    problems_.throw_if_any();
    assign_agents(spec_, config_, problems_, places_);
    for (const Switch& one : switches_) leave_behind(one);
    validate(spec_, config_, problems_, places_);
    problems_.throw_if_any();
    if (!unused_.empty()) config_.notes.push_back("without effect here: " + join(unused_));
    note_inherited();
    for (const auto& [path, place] : places_) config_.origins[path] = printable(place.brief(), 300);
    return std::move(config_);
  }

 private:
  void collect_layers() {
    Node file{.kind = Node::Kind::kMap};
    if (sources_.text)
      parse_text(*sources_.text, sources_.file, problems_, file);
    else if (!sources_.file.empty())
      parse_file(sources_.file, problems_, file, sources_.of_run);
    problems_.throw_if_any();
    const Request request = requested(sources_, file, problems_);
    config_.name = canonical_environment(request.name);
    config_.checkpoint = sources_.checkpoint;
    access_ = find_environment(request);
    take_source(file);
    env_fields_ = names_of(access_.describe);
    const std::string shipped = shipped_file(config_.name, sources_, access_);
    if (const auto mark = warpdrive_mark(file, env_fields_)) {
      fill_with_warpdrives_defaults(file, unused_);
      config_.notes.push_back(printable(mark->first.brief(), 300) + " has " + mark->second +
                              ", as WarpDrive's files do: what the file leaves out has WarpDrive's defaults" +
                              (shipped.empty() ? "" : ", not those of " + printable(shipped, 300)));
    } else if (!shipped.empty()) {
      add_shipped(shipped);
    }
    layers_.push_back(alias_layer(request.name, request.place));
    if (!sources_.file.empty()) {
      places_["name"] = request.place;
      layers_.push_back({std::move(file), true});
    }
    layers_.push_back(override_layer(sources_.overrides, problems_));
    if (const Node* name = layers_.back().tree.find("name")) {
      problems_.add(name->place, "name", "the environment is chosen by --env");
    }
  }

  EnvironmentAccess find_environment(const Request& request) const {
    // --env is what the user has just typed, and compilers' messages are long.
    const std::string place = is_source_file(sources_.env) ? "" : request.place.full() + ": ";
    if (sources_.of_run && is_source_file(config_.name) && !fs::exists(config_.name))
      throw ConfigError({concat(place, printable(config_.name, 300),
                                ": there is no such file any more: give --env with the place where it is now "
                                "(the run's folder `source` has a copy)")});
    try {
      return lookup_(config_.name);
    } catch (const UsageError& error) {
      throw ConfigError({place + error.what()});
    }
  }

  // What a run says of its environment's file must still be so, unless the user knows better.
  void take_source(const Node& file) {
    config_.source = access_.source;
    const Node* const then = file.find("source");
    if (then == nullptr || then->text == access_.source) return;
    if (sources_.spec != nullptr) {
      config_.source = then->text;
    } else if (sources_.env.empty() && !sources_.drifts) {
      problems_.add(
          then->place, "source = " + shown(*then),
          concat(
              printable(config_.name, 300), " has changed since (now ", access_.source,
              "): to eval or play with what it is now, give --env with its path; to go on training with it, "
              "--allow_drift; the run's folder `source` has it as it was"));
      problems_.throw_if_any();
    }
  }

  void add_shipped(const std::string& path) {
    Node tree;
    if (!parse_file(path, problems_, tree)) problems_.throw_if_any();
    const Request named = file_name(tree, problems_);
    if (!named.name.empty() && !is_named(named.name, config_.name)) {
      problems_.add(named.place, "name = " + named.name, "must be " + config_.name + ", as the file is");
    }
    layers_.push_back({std::move(tree), true});
    shipped_ = path;
  }

  // A parameter may change which roles there are. Policies that the environment's own file names after others
  // are left out.
  void leave_out_other_roles(Layer& shipped) {
    Node* const section = shipped.tree.find("policy");
    if (section == nullptr || !section->is_map()) return;
    const bool replaced = std::any_of(layers_.begin() + 1, layers_.end(),
                                      [](const Layer& layer) { return layer.defines_policies(); });
    std::erase_if(section->entries, [&](const Node::Entry& policy) {
      if (policy.key == "shared" || policy.value.find("roles") != nullptr ||
          policy.value.find("agents") != nullptr)
        return false;
      const bool known = contains(role_names(spec_), policy.key);
      if (!known && !replaced)
        config_.notes.push_back(concat("policy \"", policy.key, "\" (", policy.key_place.brief(),
                                       ") is left out: with these parameters there is no such role"));
      return !known;
    });
    if (section->entries.empty())
      std::erase_if(shipped.tree.entries, [](const Node::Entry& entry) { return entry.key == "policy"; });
  }

  // Returns a section of the layer, or null if it is missing or not a section.
  const Node* section(const Layer& layer, const std::string& name) {
    const Node* node = layer.tree.find(name);
    if (node == nullptr || node->is_map() || node->kind == Node::Kind::kNull) return node;
    problems_.add(node->place, name + " = " + shown(*node), "must be a section");
    return nullptr;
  }

  void read_sections(const Layer& layer) {
    std::vector<std::string> sections = {"name", "source", "policy", "opponents", "members"};
    for (const auto& [name, describe] : sections_of(config_)) {
      sections.push_back(name);
      const Node* node = section(layer, name);
      if (node == nullptr) continue;
      Reader reader(*node, name, problems_, places_);
      describe(reader);
      if (name == "env") access_.describe(reader);
      reader.finish(all_paths());
    }
    for (const Node::Entry& entry : layer.tree.entries) {
      if (contains(sections, entry.key)) continue;
      const std::string near = problems_.full() ? "" : hint(entry, sections);
      problems_.add(entry.key_place, printable(entry.key), "unknown section" + near);
    }
  }

  // --algorithm: of the policies that learn, as if --set said so of each.
  void put_algorithm(Layer& overrides) const {
    Node said;
    const auto add = [&](const std::string& policy) {
      put(said, "policy." + policy + ".algorithm",
          {.kind = Node::Kind::kScalar, .text = sources_.algorithm, .place = {"--algorithm"}});
    };
    if (overrides.defines_policies()) {
      for (const Node::Entry& policy : overrides.tree.find("policy")->entries) add(policy.key);
    } else {
      for (const PolicySettings& policy : config_.policies)
        if (policy.to_train) add(policy.name);
    }
    fill(overrides.tree, said);
  }

  // What a file says of training for the algorithm that it names does not stand in the way of another one:
  // the shape of rollouts, if that algorithm usually has another; and intervals keep their lengths.
  void leave_behind(const Switch& one) {
    const auto policy = std::ranges::find(config_.policies, one.policy, &PolicySettings::name);
    if (policy == config_.policies.end()) return;  // another one took its place
    const auto shape = [&](const AlgorithmChoice& by) { return by->usual_shape(spec_.time_limit); };
    const bool all_alike = std::ranges::all_of(config_.policies, [&](const PolicySettings& other) {
      return !other.to_train || shape(other.algorithm) == shape(policy->algorithm);
    });
    const std::int64_t batch = config_.trainer.train_batch_size;
    std::vector<std::string> dropped = one.dropped;
    if (policy->to_train && all_alike && shape(one.before) != shape(policy->algorithm)) {
      for (const char* const path : {"trainer.num_envs", "trainer.train_batch_size"}) {
        if (!is_said_in(one.source, path)) continue;
        places_.erase(path);  // validate() decides
        dropped.emplace_back(path);
      }
    }
    const bool scaled = keep_lengths(one, policy->algorithm->traits().short_iterations, batch);
    if (dropped.empty()) return;
    config_.notes.push_back(concat(
        "policy \"", one.policy, "\" is ", policy->algorithm->name(), " (", printable(one.asked.brief(), 300),
        ") and starts from its defaults; without effect, as said of ", one.before->name(), ": ",
        join(dropped),
        scaled ? concat("; its intervals, of iterations of ", batch, " steps, now count environment steps")
               : ""));
  }

  bool is_said_in(const std::string& source, const std::string& path) const {
    const auto place = places_.find(path);
    return place != places_.end() && place->second.source == source;
  }

  // Intervals count environment steps from now on if iterations have another length: those of the file
  // counted iterations of `batch` steps, or steps already. Returns whether one changed.
  bool keep_lengths(const Switch& one, bool short_iterations, std::int64_t batch) {
    const bool were_short = one.before->traits().short_iterations;
    if (were_short == short_iterations || config_.trainer.intervals != kIntervalsAuto) return false;
    config_.trainer.intervals = kIntervalsEnvSteps;
    SavingSettings& saving = config_.saving;
    bool changed = false;
    for (const auto& [path, every] : {std::pair("trainer.canary_freq", &config_.trainer.canary_freq),
                                      {"eval.every", &config_.eval.every},
                                      {"play.every", &config_.play.every},
                                      {"saving.metrics_log_freq", &saving.metrics_log_freq},
                                      {"saving.model_params_save_freq", &saving.model_params_save_freq},
                                      {"saving.checkpoint_freq", &saving.checkpoint_freq}}) {
      if (were_short || batch == 1 || *every == 0 || !is_said_in(one.source, path)) continue;
      *every *= batch;
      changed = true;
    }
    return changed;
  }

  // opponents: {NAME of a policy: [runs and checkpoints]}.
  void read_opponents(const Layer& layer) {
    const Node* node = section(layer, "opponents");
    if (node == nullptr) return;
    Reader reader(*node, "opponents", problems_, places_);
    for (PolicySettings& policy : config_.policies) reader(policy.name.c_str(), policy.opponents, "");
    reader.finish();
  }

  // members: {policy.shared.lr: [1e-3, 3e-4]}, or sections within sections. Nothing: there are none.
  void read_members(const Node& node, const std::string& path) {
    if (path.empty() && node.kind == Node::Kind::kNull) config_.members.clear();
    for (const Node::Entry& entry : node.entries)
      read_members(entry.value, path.empty() ? entry.key : concat(path, '.', entry.key));
    if (node.kind == Node::Kind::kScalar || (path.empty() && node.kind == Node::Kind::kList))
      problems_.add(node.place, concat("members", path.empty() ? "" : ".", path, " = ", shown(node)),
                    "must be a list with a value for each member");
    if (node.kind != Node::Kind::kList || path.empty()) return;
    MemberSetting setting{.path = path};
    for (const Node& item : node.items) setting.values.push_back(yaml_of(item));
    std::erase_if(config_.members, [&](const MemberSetting& one) { return one.path == path; });
    config_.members.push_back(std::move(setting));
    places_["members." + path] = node.place;
  }

  // Their values are checked when a member's own configuration is loaded.
  void check_members() {
    for (const auto& [path, values] : config_.members) {
      const int members = config_.trainer.population;
      const std::string value = concat('[', join(values), ']');
      const bool known = path.starts_with("policy.") || path.starts_with("env.") || path == "trainer.seed";
      if (!known)
        report(problems_, places_, "members." + path, value,
               "only settings of env and policy and trainer.seed may differ between members");
      else if (static_cast<int>(values.size()) != members)
        report(problems_, places_, "members." + path, value,
               concat("has ", values.size(), " values, and trainer.population is ", members));
    }
  }

  // Suggests the nearest section, or the path of a field that was written without its section: "lr",
  // "model.fc_dims", "shared.lr".
  std::string hint(const Node::Entry& entry, const std::vector<std::string>& sections) {
    std::string key = entry.key;
    for (const Node* value = &entry.value; value->is_map() && !value->entries.empty();
         value = &value->entries.front().value)
      key += "." + value->entries.front().key;
    const std::size_t dot = key.find('.');
    const std::string in_policy = dot == std::string::npos ? "" : "policy.NAME" + key.substr(dot);
    for (const std::string& path : all_paths()) {
      if (path.ends_with("." + key)) return "; did you mean \"" + path + "\"?";
    }
    if (contains(all_paths(), in_policy)) return "; did you mean \"policy." + printable(key) + "\"?";
    return suggestion(entry.key, sections);
  }

  // Gathered once: every section asks for them.
  const std::vector<std::string>& all_paths() {
    if (!paths_.empty()) return paths_;
    const auto add = [&](const Describe& describe, const std::string& prefix) {
      for (std::string& path : names_of(describe, prefix)) paths_.push_back(std::move(path));
    };
    PolicySettings policy;
    for (const auto& [name, describe] : sections_of(config_)) {
      add(describe, name + ".");
      if (name == "env") add(access_.describe, "env.");
    }
    for (const std::string& name : algorithm_names()) {
      policy.learn_by(name);
      add(describe_of(policy), "policy.NAME.");
    }
    for (const std::string& name : network_names()) {
      policy.model.set_type(name);
      add(describe_of(policy.model), "policy.NAME.model.");
    }
    return paths_;
  }

  Spec checked_spec() {
    try {
      return access_.spec();
    } catch (const UsageError& error) {
      problems_.add(std::string("env: ") + error.what());
    } catch (const std::exception& error) {
      problems_.add(concat("env: spec() of ", printable(config_.name, 300), " has thrown ", error.what(),
                           ": throw wd::UsageError with what is wrong with the parameters"));
    }
    throw ConfigError(problems_.lines());
  }

  void note_inherited() {
    constexpr std::size_t kNamed = 40;
    if (sources_.file.empty() || shipped_.empty()) return;
    std::vector<std::string> keys;
    for (const auto& [path, place] : places_) {
      const auto after = places_.lower_bound(path + ".");  // there is one of a section
      const bool section = after != places_.end() && after->first.starts_with(path + ".");
      if (place.source == shipped_ && !section && path != "name") keys.push_back(path);
    }
    if (keys.empty()) return;
    const std::size_t more = keys.size() > kNamed ? keys.size() - kNamed : 0;
    keys.resize(keys.size() - more);
    config_.inherited = concat(printable(shipped_, 300), ", the environment's own file, sets what ",
                               printable(sources_.file, 300), " leaves out: ", join(keys),
                               more > 0 ? concat(" and ", more, " more") : "",
                               " (--print_config names the source of every value)");
  }

  const ConfigSources& sources_;
  const EnvironmentLookup& lookup_;
  EnvironmentAccess access_;
  std::vector<std::string> env_fields_;
  std::vector<Layer> layers_;
  std::string shipped_;              // the environment's own file, if it is the first layer
  std::vector<std::string> unused_;  // keys without effect
  std::vector<std::string> paths_;   // of all settings, once asked for
  Config config_;
  Spec spec_;
  std::vector<Switch> switches_;
  Problems problems_;
  Places places_;
};

}  // namespace
}  // namespace config

std::string environment_of_run(const std::string& file) {
  config::Problems problems;
  config::Node tree;
  config::parse_file(file, problems, tree, true);
  problems.throw_if_any();
  const config::Request named = config::file_name(tree, problems);
  problems.throw_if_any();
  return canonical_environment(named.name);
}

Config load_config(const ConfigSources& sources, const EnvironmentLookup& lookup) {
  return config::Loader(sources, lookup).load();
}

}  // namespace wd
