// autoscale.cpp: prints the live table of probes and the chosen setting.
#include "src/cli/autoscale.h"

#include <cstdlib>

#include "src/autoscale/autoscale.h"
#include "src/autoscale/learning.h"
#include "src/autoscale/probe.h"
#include "src/base/atomic_file.h"
#include "src/base/files.h"
#include "src/base/log.h"
#include "src/cli/output.h"
#include "src/report/format.h"
#include "wd/error.h"

namespace wd::cli {

namespace {

// The launcher's report, passed to its workers.
constexpr const char* kReportVariable = "WD_AUTOSCALE_REPORT";
constexpr const char* kRefresh = "refresh";
constexpr const char* kFile = "autoscale.json";  // of a run

std::string chosen_text(const Autoscaled& done, const Config& config) {
  const scaling::SearchResult& result = done.result;
  double before = 0.0;
  for (const scaling::Trial& one : result.trials)
    if (one.probe == result.start && before == 0.0) before = one.outcome.env_steps_per_s;
  std::string text = concat("chosen: ", result.chosen.num_envs, " replicas x ", result.chosen.rollout_steps,
                            " steps = ", result.chosen.batch(), " a batch, ",
                            scaling::iterations_of(config, result.chosen.batch()), " iterations, ",
                            report::format_count(result.env_steps_per_s), " env/s");
  if (before > 0.0 && result.chosen != result.start) {
    const std::string gain = report::format_number("%.2f", result.env_steps_per_s / before);
    const bool configured =
        result.start == scaling::Probe{config.trainer.num_envs, config.trainer.rollout_steps()};
    text += concat(" (", gain, configured ? " x the configured " : " x the first, ", result.start.num_envs,
                   " x ", result.start.rollout_steps, ")");
  }
  return concat(text, ", ", report::format_bytes(result.bytes),
                done.cached ? " (found before; --auto_scale=refresh searches anew)" : "", "\n", result.reason,
                "\n");
}

}  // namespace

void AutoscaleArguments::add_to(Arguments& arguments) {
  arguments.optional_value(
      "-a,--auto_scale", how_, asked_, kRefresh,
      "find num_envs and train_batch_size by short trainings, and train with them on all GPUs; =refresh: "
      "search anew");
}

void AutoscaleArguments::read() const {
  if (!how_.empty() && how_ != kRefresh)
    throw UsageError("--auto_scale=" + how_ + ": must be alone, or =refresh");
}

void AutoscaleArguments::repeat(const std::filesystem::path& run_folder, LaunchArguments& launch,
                                ConfigSources& sources) {
  const Experiment setup = load_environment(sources);
  if (launch.membership().alone()) launch.use_all_gpus(setup.config.trainer.device);
  const std::optional<std::string> report = read_whole(run_folder / kFile);
  if (!report) return;
  const Autoscaled done =
      scaling::autoscaled(scaling::parse_report(*report), setup.config, setup.environment->spec());
  sources.overrides.insert(sources.overrides.end(), done.settings.begin(), done.settings.end());
}

void AutoscaleArguments::choose(LaunchArguments& launch, ConfigSources& sources, bool quiet) {
  Experiment setup = load_environment(sources);
  if (!setup.config.trainer.offline.empty())
    throw UsageError(
        concat("--auto_scale chooses replicas by how fast they are played, and with trainer.offline = ",
               setup.config.trainer.offline,
               " nothing is played: set trainer.num_envs and trainer.train_batch_size"));
  Autoscaled done;
  const char* const report = std::getenv(kReportVariable);
  const bool is_probe = std::getenv(scaling::kProbeVariable) != nullptr;
  if (report != nullptr && !is_probe) {
    done = scaling::autoscaled(scaling::parse_report(report), setup.config, setup.environment->spec());
  } else {
    if (!launch.membership().alone() && !is_probe) {
      throw UsageError(
          "--auto_scale starts workers itself, and this is one that others have started: run it once with "
          "--num_gpus or "
          "--num_workers on one machine, then give all workers the --set options that it prints");
    }
    if (!is_probe) launch.use_all_gpus(setup.config.trainer.device);
    AutoscaleOptions options{.launch = launch.options(setup.config.trainer.device),
                             .refresh = how_ == kRefresh};
    bool heading = false;
    options.observe = [&](const scaling::Trial& one) {
      if (quiet) return;
      if (!std::exchange(heading, true)) print(scaling::table_heading() + '\n');
      print(scaling::table_line(one, setup.config.trainer.total_steps) + '\n');
    };
    done = autoscale(setup.config, *setup.environment, options);
    if (!quiet) print(chosen_text(done, setup.config) + scaling::set_flags(done.result.chosen) + '\n');
    for (const std::string& note : done.notes) logging::warn(note);
    const std::string cost = scaling::search_cost(done.result, setup.config.trainer.total_steps);
    if (!quiet && !done.cached && !cost.empty()) logging::info(cost);
    ::setenv(kReportVariable, done.json.c_str(), 1);  // for workers, if any
  }
  sources.overrides.insert(sources.overrides.end(), done.settings.begin(), done.settings.end());
  json_ = done.json;
}

void AutoscaleArguments::write_file(const std::filesystem::path& run_folder) const {
  if (!json_.empty()) write_file_atomically(run_folder / kFile, json_, Durability::kReplace);
}

}  // namespace wd::cli
