// resume.cpp: finds checkpoints and compares configurations.
#include "src/cli/resume.h"

#include <algorithm>
#include <map>
#include <set>

#include "src/base/join.h"
#include "src/base/log.h"
#include "src/base/name.h"
#include "src/base/suggest.h"
#include "src/base/whole_number.h"
#include "src/cli/output.h"
#include "src/cli/runs.h"
#include "src/cli/setup.h"
#include "src/config/role_names.h"
#include "src/game/frozen.h"
#include "src/run_report/record.h"
#include "wd/error.h"
#include "wd/kernels/action_layout.h"
#include "wd/safetensors.h"
#include "wd/weights.h"

namespace wd::cli {

namespace {

namespace fs = std::filesystem;

bool may_change(const std::string& path) {
  static const std::set<std::string> kFree = {
      "trainer.total_steps", "trainer.num_episodes", "trainer.max_seconds", "trainer.stop_return",
      "trainer.threads",     "trainer.device",       "trainer.stop_on"};
  const std::string section = path.substr(0, path.find('.'));
  return std::set<std::string>{"saving", "eval", "play", "autoscale"}.contains(section) ||
         kFree.contains(path);
}

Checkpoint checkpoint_of(const fs::path& folder) {
  if (!fs::is_directory(folder)) throw UsageError(folder.string() + ": there is no such folder");
  return is_checkpoint(folder) ? open_checkpoint(fs::canonical(folder)) : newest_checkpoint(folder);
}

[[noreturn]] void refuse(const fs::path& checkpoint, const std::string& why) {
  throw UsageError(concat("checkpoint ", checkpoint.string(), " lies in no run of its own: ", why,
                          "; copy the whole folder of its run, or begin a new run with its weights: "
                          "--warm_start ",
                          checkpoint.string()));
}

// What the run in which a checkpoint's folder lies says of itself. A run's files are two folders above its
// checkpoints. Resuming truncates and replaces them, so they must be a run's.
run_report::RunRecord run_above(const fs::path& checkpoint) {
  const fs::path run = checkpoint.parent_path().parent_path();
  if (checkpoint.parent_path().filename() != "checkpoints")
    refuse(checkpoint, "it must be in RUN/checkpoints");
  std::error_code error;
  const fs::path file = run / "config.yaml";
  if (!fs::is_regular_file(file, error)) refuse(checkpoint, file.string() + " is missing");
  check_program_of(run);
  run_report::RunRecord record = run_report::read_record(run);
  if (!is_environment_name(record.setting("name")) ||
      !whole_number<std::uint64_t>(record.setting("trainer.seed")))
    refuse(checkpoint, "the configuration there does not belong to a run: it has no name or no trainer.seed");
  return record;
}

// Names of the policies whose weights a checkpoint holds; averages are not policies of their own.
std::vector<std::string> policies_in(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const auto& [file, digest] : checkpoint.files)
    if (const fs::path path = file;
        file.starts_with(kWeightsFolder) && !path.stem().string().ends_with(kAverageSuffix))
      names.push_back(path.stem().string());
  return names;
}

// Choices of actions may be as many in all, and others: their heads must be the same, except for a network
// that computes choice by choice.
void check_choices(const fs::path& file, const Policy& policy) {
  const TensorMetadata metadata = SafetensorsReader(file).metadata();
  const auto there = metadata.find("action_heads");
  const ActionLayout& layout = policy.action_layout();
  const std::string here = join(std::vector<int>(layout.head_size, layout.head_size + layout.num_heads), ",");
  if (there != metadata.end() && there->second != here && policy.model_settings().input != kChoiceInput)
    throw UsageError(concat(file.string(), ": chooses among ", there->second, " there, and among ",
                            here.empty() ? "none" : here, " here"));
}

void take_weights(const WarmStart& start, const Checkpoint& checkpoint, const Config& config,
                  Policy& policy) {
  const std::vector<std::string> there = policies_in(checkpoint);
  std::string name = start.name.empty() ? policy.name() : start.name;
  if (start.name.empty() && !start.policy.empty() && there.size() == 1) name = there.front();
  const fs::path file = checkpoint.folder / kWeightsFolder / (name + ".safetensors");
  if (!fs::exists(file)) {
    std::vector<std::string> map;
    for (const std::string& own : policy_names(config))
      map.push_back(WarmStart{own, start.run, contains(there, own) ? own : there.front()}.text());
    throw UsageError(concat("--warm_start ", start.text(), ": checkpoint ", checkpoint.name(),
                            " has no policy '", name, "', but ", join(there),
                            ": name the one with which each policy begins, as --warm_start ",
                            join(map, " --warm_start ")));
  }
  try {
    check_choices(file, policy);
    load_weights(policy, file);
  } catch (const UsageError& error) {
    throw UsageError(concat("--warm_start ", start.text(), ": policy '", policy.name(),
                            "' cannot begin with the weights of '", name, "': ", error.what()));
  }
}

bool means_latest(const std::string& argument) { return argument.empty() || argument == "latest"; }

}  // namespace

fs::path find_run(const std::string& argument, const std::string& run_dir, const fs::path& base) {
  const bool latest = means_latest(argument);
  if (!latest && !run_dir.empty()) {
    throw UsageError("--resume " + argument +
                     " and --run_dir exclude each other: a run goes on in its own folder");
  }
  const fs::path folder = !latest            ? fs::path(one_run(argument))
                          : !run_dir.empty() ? fs::path(run_dir)
                                             : newest_run(base);
  if (folder.empty())
    throw UsageError("--resume: there is no run with checkpoints under " + base.string() +
                     "; name one: --resume RUN");
  if (!fs::is_directory(folder)) throw UsageError(folder.string() + ": there is no such folder");
  if (is_checkpoint(folder)) return run_above(fs::canonical(folder)).folder;
  const std::vector<fs::path> checkpoints = list_checkpoints(folder / "checkpoints");
  if (checkpoints.empty())
    throw UsageError(concat(folder.string(), ": there is no checkpoint to go on from"));
  static_cast<void>(run_above(checkpoints.front()));
  return folder;
}

Checkpoint find_checkpoint(const std::string& argument, const fs::path& run, bool allow_drift) {
  const bool named = !means_latest(argument) && is_checkpoint(argument);
  Checkpoint checkpoint = checkpoint_of(named ? fs::path(argument) : run);
  const run_report::RunRecord owner = run_above(checkpoint.folder);
  const std::string name = owner.setting("name"), seed = owner.setting("trainer.seed");
  const bool same_seed = seed == std::to_string(checkpoint.info.seed) || allow_drift;
  if (kept_name(name) != checkpoint.info.environment || !same_seed) {
    refuse(checkpoint.folder, concat(owner.folder.string(), " is a run of ", name, " with seed ", seed,
                                     ", the checkpoint is of ", checkpoint.info.environment, " with seed ",
                                     checkpoint.info.seed));
  }
  check_name_of(checkpoint);
  return checkpoint;
}

std::vector<std::string> drift(const Experiment& now, const Experiment& then) {
  struct Values {
    std::string before = "(none)", after = "(none)";
  };
  std::map<std::string, Values> settings;
  for (const auto& [path, value] : config_values(then.config, then.describe())) settings[path].before = value;
  for (const auto& [path, value] : config_values(now.config, now.describe())) settings[path].after = value;
  std::vector<std::string> differences;
  for (const auto& [path, values] : settings) {
    if (!may_change(path) && values.before != values.after)
      differences.push_back(concat(path, ": ", values.before, " -> ", values.after));
  }
  return differences;
}

std::string WarmStart::text() const {
  return concat(policy, policy.empty() ? "" : "=", run, name.empty() ? "" : ":", name);
}

WarmStarts parse_warm_starts(const std::vector<std::string>& arguments, const fs::path& base) {
  WarmStarts starts;
  for (const std::string& argument : arguments) {
    const std::size_t equals = fs::is_directory(base / argument) ? std::string::npos : argument.find('=');
    if (equals == std::string::npos) {
      starts.push_back({.run = argument});
      continue;
    }
    const auto [run, name] = parts_of_player(argument.substr(equals + 1), base);
    if (equals == 0 || run.empty())
      throw UsageError(concat("--warm_start ", argument, ": must be RUN or POLICY=RUN:NAME"));
    starts.push_back({argument.substr(0, equals), run, name});
  }
  std::set<std::string> named;
  for (const WarmStart& start : starts)
    if (!named.insert(start.policy).second || (start.policy.empty() && starts.size() > 1))
      throw UsageError(concat("--warm_start ", start.text(), ": ",
                              start.policy.empty()
                                  ? "one run is for all policies: give it alone, or name the "
                                    "policy, as POLICY=RUN:NAME"
                                  : "names the policy a second time"));
  return starts;
}

void warm_start(const WarmStarts& starts, const Config& config, std::vector<Policy>& policies) {
  for (const WarmStart& start : starts)
    if (!start.policy.empty() && !contains(policy_names(config), start.policy))
      throw UsageError(concat("--warm_start ", start.text(), ": there is no policy '", start.policy, "' here",
                              suggestion(start.policy, policy_names(config))));
  std::map<std::string, Checkpoint> opened;  // by run: each is verified once
  for (std::size_t p = 0; p < policies.size(); ++p) {
    const PolicySettings& settings = config.policies[p];
    const auto start = std::ranges::find_if(
        starts, [&](const WarmStart& each) { return each.policy.empty() || each.policy == settings.name; });
    const std::string& file = settings.model.model_ckpt_filepath;
    if (start == starts.end()) {
      if (file.empty())
        logging::info(concat("policy '", settings.name,
                             "' begins with first weights of its own: --warm_start does not name it"));
      continue;
    }
    if (!file.empty() && !start->policy.empty())
      throw UsageError(concat("--warm_start ", start->text(), ": policy '", settings.name,
                              "' has a model_ckpt_filepath, ", file, ": give one of them"));
    if (!file.empty()) {
      logging::info(concat("policy '", settings.name,
                           "' begins with the weights of its model_ckpt_filepath, ", file,
                           ", and not with those of --warm_start"));
      continue;
    }
    if (!opened.contains(start->run)) opened[start->run] = checkpoint_of(one_run(start->run));
    take_weights(*start, opened[start->run], config, policies[p]);
  }
  if (opened.empty())
    throw UsageError(concat("--warm_start ", starts.front().text(),
                            " has nothing to do: every policy has a model_ckpt_filepath: give one of them"));
}

}  // namespace wd::cli
