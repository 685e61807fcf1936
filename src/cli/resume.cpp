// resume.cpp: finds checkpoints and compares configurations.
#include "src/cli/resume.h"

#include <algorithm>
#include <map>
#include <set>

#include "src/cli/output.h"
#include "src/cli/setup.h"
#include "wd/error.h"
#include "wd/weights.h"

namespace wd::cli {

std::filesystem::path run_of(const Checkpoint& checkpoint) {
  return checkpoint.folder.parent_path().parent_path();
}

namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 5;  // BASE/NAME/TAG/ENV/RUN

// Collects the runs with checkpoints below a folder, and the times of their last checkpoint.
void gather_runs(const fs::path& folder, int depth,
                 std::vector<std::pair<fs::file_time_type, fs::path>>& runs) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (!entry.is_directory(error) || entry.is_symlink(error)) continue;
    const fs::path checkpoints = entry.path() / "checkpoints";
    if (fs::is_directory(checkpoints, error)) {
      runs.emplace_back(fs::last_write_time(checkpoints, error), entry.path());
    } else if (depth < kDeepest) {
      gather_runs(entry.path(), depth + 1, runs);
    }
  }
}

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

// A run's files are two folders above its checkpoints. Resuming truncates and replaces them, so they must
// belong to this checkpoint's run.
void check_run(const Checkpoint& checkpoint, bool allow_drift) {
  const fs::path run = run_of(checkpoint);
  const auto refuse = [&](const std::string& why) {
    throw UsageError(concat("checkpoint ", checkpoint.folder.string(), " lies in no run of its own: ", why,
                            "; copy the whole folder of its run, or begin a new run with its weights: "
                            "--warm_start ",
                            checkpoint.folder.string()));
  };
  if (checkpoint.folder.parent_path().filename() != "checkpoints") refuse("it must be in RUN/checkpoints");
  std::error_code error;
  const fs::path file = run / "config.yaml";
  if (!fs::is_regular_file(file, error)) refuse(file.string() + " is missing");
  check_program_of(run);
  Config config;
  try {
    ConfigSources sources;
    sources.file = file;
    sources.shipped = false;
    config = load_environment(sources).config;
  } catch (const std::runtime_error& cause) {
    refuse(concat("the configuration there does not belong to a run: ", cause.what()));
  }
  const auto seed = static_cast<std::uint64_t>(config.trainer.seed);
  const bool same_seed = seed == checkpoint.info.seed || allow_drift;
  if (config.name != checkpoint.info.environment || !same_seed) {
    refuse(concat(run.string(), " is a run of ", config.name, " with seed ", seed, ", the checkpoint is of ",
                  checkpoint.info.environment, " with seed ", checkpoint.info.seed));
  }
  check_name_of(checkpoint);
}

Checkpoint find_any_checkpoint(const std::string& argument, const std::string& run_dir,
                               const fs::path& base) {
  const bool latest = argument.empty() || argument == "latest";
  if (!latest && !run_dir.empty()) {
    throw UsageError("--resume " + argument +
                     " and --run_dir exclude each other: a run goes on in its own folder");
  }
  if (!latest) return checkpoint_of(argument);
  if (!run_dir.empty()) return checkpoint_of(run_dir);
  std::vector<std::pair<fs::file_time_type, fs::path>> runs;
  gather_runs(base, 1, runs);
  if (runs.empty())
    throw UsageError("--resume: there is no run with checkpoints under " + base.string() +
                     "; name one: --resume RUN");
  return newest_checkpoint(std::max_element(runs.begin(), runs.end())->second);
}

}  // namespace

Checkpoint find_checkpoint(const std::string& argument, const std::string& run_dir, const fs::path& base,
                           bool allow_drift) {
  Checkpoint checkpoint = find_any_checkpoint(argument, run_dir, base);
  check_run(checkpoint, allow_drift);
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

void warm_start(const std::string& argument, std::vector<Policy>& policies) {
  const Checkpoint checkpoint = checkpoint_of(argument);
  for (Policy& policy : policies) {
    const fs::path path = checkpoint.folder / "weights" / (policy.name() + ".safetensors");
    if (!fs::exists(path))
      throw UsageError(concat("--warm_start ", argument, ": checkpoint ", checkpoint.name(),
                              " has no policy '", policy.name(), "'"));
    load_weights(policy, path);
  }
}

}  // namespace wd::cli
