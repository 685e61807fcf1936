// resume.cpp: finds checkpoints and compares configurations.
#include "src/cli/resume.h"

#include <algorithm>
#include <map>
#include <set>

#include "src/base/log.h"
#include "src/base/name.h"
#include "src/base/whole_number.h"
#include "src/cli/output.h"
#include "src/cli/runs.h"
#include "src/cli/setup.h"
#include "src/run_report/record.h"
#include "wd/error.h"
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

void warm_start(const std::string& argument, const Config& config, std::vector<Policy>& policies) {
  const Checkpoint checkpoint = checkpoint_of(one_run(argument));
  std::size_t kept = 0;
  for (std::size_t p = 0; p < policies.size(); ++p) {
    Policy& policy = policies[p];
    if (const std::string& file = config.policies[p].model.model_ckpt_filepath; !file.empty()) {
      logging::info(concat("policy '", policy.name(),
                           "' begins with the weights of its model_ckpt_filepath, ", file,
                           ", and not with those of --warm_start"));
      ++kept;
      continue;
    }
    const fs::path path = checkpoint.folder / "weights" / (policy.name() + ".safetensors");
    if (!fs::exists(path))
      throw UsageError(concat("--warm_start ", argument, ": checkpoint ", checkpoint.name(),
                              " has no policy '", policy.name(), "'"));
    load_weights(policy, path);
  }
  if (kept == policies.size())
    throw UsageError(concat("--warm_start ", argument,
                            " has nothing to do: every policy has a model_ckpt_filepath: give one of them"));
}

}  // namespace wd::cli
