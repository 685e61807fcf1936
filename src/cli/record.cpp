// record.cpp: `wdtrain record`: writes the transitions of play to files, from which trainer.offline learns.
#include <algorithm>

#include "src/autoscale/memory_needed.h"
#include "src/base/name.h"
#include "src/base/printable.h"
#include "src/cli/match_options.h"
#include "src/cli/output.h"
#include "src/cli/runs.h"
#include "src/cli/setup.h"
#include "src/evaluation/record_transitions.h"
#include "src/report/format.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

struct RecordOptions {
  ConfigOptions config;
  std::string run, out, starts;
  RecordingOptions recording;  // what options say of it directly
  std::int64_t steps = 0, num_envs = 0, part_mib = 64;
};

// Of a run, or of an environment that is played at random.
ConfigSources sources_of(const RecordOptions& options) {
  const bool names_config = !options.config.env.empty() || !options.config.file.empty();
  if (options.run.empty() && !options.recording.random)
    throw UsageError(
        "record needs RUN, a run's folder or a checkpoint's; or --random, and --env or --config");
  if (!options.run.empty() && names_config && !is_source_file(options.config.env))
    throw UsageError(
        concat("record plays ", options.run, " in its own environment: leave out --env and --config"));
  if (options.recording.random && options.recording.greedy)
    throw UsageError("--random and --greedy both choose the actions: give one of them");
  ConfigSources sources = options.config.sources(options.run.empty());
  if (options.run.empty()) return sources;
  ConfigSources of_run = sources_of_own_run(options.run);
  of_run.env = sources.env;
  of_run.trusted = sources.trusted;
  std::ranges::copy(sources.overrides, std::back_inserter(of_run.overrides));
  return of_run;
}

RecordingOptions recording_of(const RecordOptions& options, const Config& config) {
  RecordingOptions recording = options.recording;
  recording.folder = options.out;
  recording.num_envs = static_cast<int>(options.num_envs > 0 ? options.num_envs : config.trainer.num_envs);
  recording.steps = options.steps / recording.num_envs;
  if (recording.steps < 1 || options.steps % recording.num_envs != 0)
    throw UsageError(concat("--steps ", options.steps, ": must be a multiple of the ", recording.num_envs,
                            " replicas (--num_envs), as ",
                            std::max<std::int64_t>(recording.steps, 1) * recording.num_envs));
  recording.starts = parse_starts(options.starts, config.env);
  recording.part_bytes = options.part_mib << 20;
  return recording;
}

}  // namespace

int record(const CommandLine& line) {
  Arguments arguments(
      line, "record",
      "Play with a run's policies, as they act in training, and write all transitions to files, from which "
      "trainer.offline learns.");
  RecordOptions options;
  arguments.word("RUN", options.run, "folder of a run, or of one of its checkpoints");
  options.config.add_to(arguments);
  arguments.option("-o,--out", options.out, "FOLDER", "folder to write: POLICY/part-00000.safetensors, ...");
  arguments.number("--steps", options.steps, {1, 1e12}, "INT",
                   "environment steps to record, of all replicas together");
  arguments.number("--num_envs", options.num_envs, {1, 1e7}, "INT", "replicas (trainer.num_envs)");
  arguments.number("--seed", options.recording.seed, TrainerSettings::kSeeds, "INT",
                   "seed of the episodes, different from all of training (1)");
  arguments.flag("--random", options.recording.random, "legal actions at random, without a run's policies");
  arguments.flag("--greedy", options.recording.greedy, "policies take their most likely action");
  arguments.number("--exploration", options.recording.exploration, {0, 1}, "NUMBER",
                   "what policies explore with: of DQN and PQN, the probability of a random choice (0)");
  arguments.option("--starts", options.starts, "training | fresh", "start states, as for eval");
  arguments.number("--part_mib", options.part_mib, {1, 65'536}, "INT", "size of a file [MiB] (64)");
  if (!arguments.parse()) return 0;
  if (options.out.empty() || options.steps == 0)
    throw UsageError("record needs --out FOLDER and --steps INT");
  options.run = one_run(options.run);
  const Experiment setup = load_to_play(sources_of(options));
  const RecordingOptions recording = recording_of(options, setup.config);
  if (!setup.device.is_cuda()) {
    scaling::check_recording_memory(setup.config, *setup.environment, recording.num_envs,
                                    std::min(recording.steps, kRecordedRollout), recording.steps,
                                    recording.part_bytes);
  }
  const std::int64_t files =
      record_transitions(setup.config, *setup.environment, weights_of(options.run), setup.device, recording);
  print(concat(options.steps, " steps of ", recording.num_envs, " replicas in ",
               report::counted(files, "file"), " below ", on_one_line(options.out), "\n"));
  return 0;
}

}  // namespace wd::cli
