// setup.cpp: options, configuration folders, and the environment that they select.
#include "src/cli/setup.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/base/join.h"
#include "src/base/log.h"
#include "src/base/name.h"
#include "src/base/program_name.h"
#include "src/base/suggest.h"
#include "src/cli/description.h"
#include "src/cli/output.h"
#include "src/config/setting_table.h"
#include "src/config/synonyms.h"
#include "src/device/device.h"
#include "src/game/opponents.h"
#include "src/outside/python.h"
#include "src/report/format.h"
#include "src/run/start.h"
#include "src/run_report/record.h"
#include "wd/detail/networks.h"
#include "wd/detail/parallel.h"
#include "wd/detail/vectors.h"

namespace wd::cli {
namespace {

constexpr Shorthand kDevice = {"--device", "trainer.device"};
constexpr Shorthand kThreads = {"--threads", "trainer.threads"};
// More threads per processor than this give a warning: even tests of reproducibility do not need them.
constexpr int kManyThreads = 4;

// Returns the table entry of a setting.
FieldInfo field_of(const std::string& path) {
  for (const FieldInfo& field : list_settings({}, [](Fields&) {}))
    if (field.name == path) return field;
  throw std::logic_error("no setting " + path);
}

}  // namespace

std::string yaml_text(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result.append(c == '\'' ? 2 : 1, c);
  return result + "'";
}

std::vector<std::string> environment_names() {
  std::vector<std::string> names;
  for (const EnvironmentRow& row : detail::environment_table()) names.push_back(row.name);
  return names;
}

void ConfigOptions::add_to(Arguments& arguments, const std::vector<Shorthand>& shorthands) {
  arguments.option("-e,--env", env, "NAME", "environment: `" + program_name() + " envs` lists them");
  arguments.option("-c,--config", file, "FILE", "YAML file that overrides configs/NAME.yaml");
  arguments.flag("--trust", trusted, kTrustHelp);
  arguments.option("--algorithm", algorithm, "ALGORITHM",
                   "algorithm of all policies that learn, with its own defaults");
  arguments.repeatable("-s,--set", set_, "SECTION.KEY=VALUE",
                       "one setting, overrides all files; may be repeated");
  const auto add = [&](const Shorthand& shorthand) {
    const FieldInfo field = field_of(shorthand.path);
    values_.push_back(std::make_unique<Value>(Value{shorthand, {}}));
    arguments.option(shorthand.option, values_.back()->text, field.type, field.help);
  };
  add(kDevice);
  add(kThreads);
  for (const Shorthand& shorthand : shorthands) add(shorthand);
  arguments.on_unknown([this](const std::string& name, const std::string& value, bool near) {
    return setting_hint(name, value, near);
  });
}

void ConfigOptions::add_word(Arguments& arguments) {
  arguments.word("ENV", word_, "the same as --env", "NAME");
}

void ConfigOptions::take_word(const Arguments& arguments) {
  if (word_.empty()) return;
  const std::vector<std::string> names = environment_names();
  const std::string name = canonical_environment(word_);
  const bool known =
      contains(names, name) || std::filesystem::exists(name + ".cu") ||  // which the error will suggest
      ((is_source_file(name) || name.find(':') != std::string::npos) && is_environment_name(name));
  if (!known || word_.find('=') != std::string::npos)
    arguments.refuse(word_, concat("there is no environment of that name", did_you_mean(word_, names),
                                   gymnasium_hint(word_), " (`", program_command(), " envs` lists them)"));
  if (!env.empty() && env != word_) throw UsageError(concat("give ", word_, " or --env ", env, ", not both"));
  env = word_;
}

// An option that is the name of a setting: the option, or the --set, that sets it.
std::string ConfigOptions::setting_hint(const std::string& name, const std::string& value, bool near) const {
  std::vector<FieldInfo> fields;
  try {
    fields = settings_of({env.empty() ? word_ : env, file, {}, config_folders()});
  } catch (const UsageError&) {  // no environment yet, or a wrong one
    fields = general_settings();
  }
  std::vector<std::string> keys;
  for (const FieldInfo& field : fields) keys.push_back(key_of(field));
  std::string key(config::our_name(name));
  if (key.empty()) key = near ? nearest_name(name, keys) : name;
  std::vector<std::string> choices;
  for (const FieldInfo& field : fields) {
    if (key_of(field) != key) continue;
    const auto option =
        std::ranges::find_if(values_, [&](const auto& one) { return one->shorthand.path == field.name; });
    if (option != values_.end())
      return concat("; did you mean ", (*option)->shorthand.option, value.empty() ? "" : " ", value, "?");
    std::string given = value.empty() ? "VALUE" : value;
    if (field.type.starts_with("list") && !given.starts_with('[')) given = "[" + given + "]";
    choices.push_back("--set " + shell_word(concat(field.name, "=", given)));
  }
  constexpr std::size_t kMost = 3;
  if (choices.empty()) return "";
  const bool all = choices.size() <= kMost;
  choices.resize(std::min(choices.size(), kMost));
  return concat("; did you mean ", join(choices, " or "), all ? "" : " or a similar one", "?");
}

ConfigSources ConfigOptions::sources(bool environment_needed) const {
  if (environment_needed && env.empty() && file.empty()) {
    throw UsageError("no environment: give --env NAME (" + join(environment_names()) + ") or --config FILE");
  }
  ConfigSources sources{env, file, {}, config_folders()};
  sources.algorithm = algorithm;
  sources.trusted = trusted;
  for (const std::string& set : set_) sources.overrides.push_back(parse_override(set));
  for (const auto& value : values_) {
    if (value->text.empty()) continue;
    const bool text = field_of(value->shorthand.path).type == "text";
    sources.overrides.push_back(
        {value->shorthand.path, text ? yaml_text(value->text) : value->text, value->shorthand.option});
  }
  return sources;
}

Experiment load_setup(const ConfigSources& sources, const Membership& self) {
  vector_bytes();  // throws if WD_CPU is wrong, before anything is written
  Experiment setup = load_environment(sources);
  share_threads(setup.config.trainer.threads, self.local_world_size);
  const int threads = setup.config.trainer.threads, processors = available_processors();
  if (threads > processors * kManyThreads && self.rank == 0) {
    logging::warn(concat("trainer.threads = ", threads, ": this process may use ",
                         report::counted(processors, "processor"),
                         "; more threads than that only wait for one another"));
  }
  const auto request = static_cast<DeviceRequest>(setup.config.trainer.device);
  try {
    setup.device = select_device(request, self.local_rank);
    const std::string left_out = request == DeviceRequest::kAuto ? why_gpu_is_left_out(self.local_rank) : "";
    if (!left_out.empty()) {
      logging::warn(concat("this machine seems to have a GPU, but the CPU is used: ", left_out, " (`",
                           program_command(), " doctor` examines it; --device cpu chooses the CPU)"));
    }
  } catch (const UsageError& error) {
    // A problem of an option is reported by its name, one of a file by its line.
    const std::string& origin = setup.config.origins.at("trainer.device");
    throw UsageError(origin == "--device" ? concat("--", error.what()) : concat(origin, ": ", error.what()));
  }
  return setup;
}

void leave_unread_state_out(Experiment& setup) {
  if (!is_python_environment(setup.config.name)) return;
  for (const PolicySettings& policy : setup.config.policies)
    if (policy.num_opponents() > 0 || contains(policy.model.all_reads(), "state")) return;
  outside::leave_state_out(*setup.environment);
}

nlohmann::ordered_json opponents_of(const Experiment& setup) {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const PolicySettings& policy : setup.config.policies) {
    if (policy.num_opponents() == 0) continue;
    const OpponentList list = find_opponents(setup.config, *setup.environment, policy);
    for (const std::vector<FoundPlayer>* const found : {&list.others, &list.pool_from})
      for (const FoundPlayer& one : *found)
        if (one.frozen)
          all[policy.name][one.name()] = concat(one.frozen->source, ", weights ", one.frozen->digest);
  }
  return all;
}

void check_program_of(const std::filesystem::path& folder) {
  const run_report::RunRecord run = run_report::read_record(folder);
  std::string missing;
  if (const std::string name = run.setting("name");
      !name.empty() && is_name(name) && !contains(environment_names(), canonical_environment(name)))
    missing = "environment " + name;
  for (const auto& [path, value] : run.settings)
    if (path.starts_with("policy.") && path.ends_with(".model.type") && !contains(network_names(), value))
      missing = "network " + value;
  if (missing.empty()) return;
  const std::vector<nlohmann::ordered_json> starts = run::read_starts(folder);
  std::string program;
  if (!starts.empty()) {
    const auto command = starts.back().value("command", nlohmann::ordered_json::array());
    if (!command.empty() && command[0].is_string()) program = " (" + command[0].get<std::string>() + ")";
  }
  throw UsageError(concat(folder.string(), ": made by another program", program, ", which has ", missing,
                          "; ", program_name(), " has none of that name: use that program"));
}

}  // namespace wd::cli
