// train.cpp: `wdtrain --env NAME`: trains, and leaves a run folder; --resume goes on with one.
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "src/cli/output.h"
#include "src/cli/resume.h"
#include "src/cli/setup.h"
#include "wd/fault.h"
#include "wd/log.h"
#include "wd/run.h"
#include "wd/trainer.h"

namespace wd::cli {
namespace {

const std::vector<Shorthand> kShorthands = {
    {"--seed", "trainer.seed"},
    {"--num_envs", "trainer.num_envs"},
    {"--train_batch_size", "trainer.train_batch_size"},
    {"--total_steps", "trainer.total_steps"},
    {"--max_seconds", "trainer.max_seconds"},
    {"--stop_return", "trainer.stop_return"},
    {"--run_dir", "saving.run_dir"},
};

struct TrainArguments {
  ConfigOptions config;
  bool quiet = false, print_only = false, resume = false, allow_drift = false;
  std::string resume_from, warm_start, fault;

  bool parse(const CommandLine& line);
};

bool TrainArguments::parse(const CommandLine& line) {
  Arguments arguments(line, "",
                      "Train policies in an environment; the run folder gets weights, metrics, configuration "
                      "and checkpoints.");
  config.add_to(arguments, kShorthands);
  arguments.optional_value("--resume", resume_from, resume, "RUN|CHECKPOINT",
                           "go on with a run where its newest checkpoint, or the one named, left off; alone: "
                           "the run that wrote one last");
  arguments.flag("--allow_drift", allow_drift,
                 "with --resume: take settings that differ from the checkpoint's");
  arguments.option("--warm_start", warm_start, "RUN|CHECKPOINT",
                   "begin a new run with the weights of that one");
  arguments.flag("-q,--quiet", quiet, "no progress on stdout, only warnings on stderr");
  arguments.flag("--print_config", print_only, "show every setting and where it came from, and do not train");
  arguments.hidden("--fault", fault);
  if (!arguments.parse()) return false;
  if (resume && !config.file.empty()) {
    throw UsageError(
        "--resume and --config exclude each other: a run goes on with its own configuration; change it by "
        "--set");
  }
  if (resume && !warm_start.empty()) throw UsageError("--resume and --warm_start exclude each other");
  if (allow_drift && !resume) throw UsageError("--allow_drift is for --resume");
  return true;
}

RunOptions run_options(const Setup& setup, bool quiet) {
  const Config& config = setup.config;
  RunOptions options;
  options.env = config.name;
  options.device = setup.device.is_cuda() ? "cuda" : "cpu";
  options.seed = static_cast<std::uint64_t>(config.trainer.seed);
  options.run_dir = config.saving.run_dir;
  options.base = config.saving.base();
  options.total_steps = config.trainer.total_steps;
  options.max_seconds = config.trainer.max_seconds;
  options.quiet = quiet;
  return options;
}

// The signal that asked this program to end; 0: none. The first one ends training in good order, a second one
// at once.
volatile std::sig_atomic_t received = 0;

void remember(int signal) {
  received = signal;
  std::signal(signal, SIG_DFL);
  constexpr std::string_view kMessage = "\nstopping after this iteration; once more to stop at once\n";
  static_cast<void>(::write(STDERR_FILENO, kMessage.data(), kMessage.size()));
}

// The exit code: 0, or 128 + n where signal n ended training.
int run_training(const TrainArguments& arguments, const Setup& setup, Trainer& trainer, Run& run,
                 Checkpoints& checkpoints) {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, remember);
  TrainOptions options{setup.config, [] { return received != 0; }};
  if (!arguments.fault.empty()) options.fault = parse_fault(arguments.fault);
  const std::string reason = wd::train(options, trainer, run, checkpoints);
  logging::info(concat("ended by ", reason, "; results are in ", run.folder().string()));
  return reason == "signal" ? 128 + received : 0;
}

int begin(const TrainArguments& arguments, const ConfigSources& sources) {
  const Setup setup = load_setup(sources);
  for (const std::string& note : setup.config.notes) logging::warn(note);
  Trainer trainer(setup.config, *setup.row, *setup.environment, setup.device);
  if (!arguments.warm_start.empty()) warm_start(arguments.warm_start, trainer.policies());
  Run run(run_options(setup, arguments.quiet));
  logging::info(concat("training ", setup.config.name, " on ", describe(setup.device), "; run folder ",
                       run.folder().string()));
  run.write_config(print_config(setup.config, setup.describe(), false));
  Checkpoints checkpoints(run.folder() / "checkpoints", setup.config.saving.keep_last);
  return run_training(arguments, setup, trainer, run, checkpoints);
}

void refuse_drift(const Setup& now, const Checkpoint& checkpoint, bool allowed) {
  ConfigSources saved;
  saved.file = checkpoint.folder / "config.yaml";
  saved.shipped = false;
  const std::vector<std::string> differences = drift(now, load_environment(saved));
  if (differences.empty()) return;
  std::string list;
  for (const std::string& difference : differences) list += "\n  " + difference;
  if (allowed) return logging::warn("these settings differ from the checkpoint's:" + list);
  throw UsageError("these settings differ from the checkpoint's, so that this would be another training:" +
                   list + "\nleave them as they were, or give --allow_drift");
}

// Whether the run's summary says so: a process that was killed at its very end leaves some tidying to do.
bool was_finished(const std::filesystem::path& run) {
  std::ifstream file(run / "summary.json");
  const nlohmann::json summary = nlohmann::json::parse(file, nullptr, false);
  return summary.is_object() && summary.value("status", nlohmann::json()) == "finished";
}

int go_on(const TrainArguments& arguments, const Checkpoint& checkpoint, const ConfigSources& sources) {
  const Setup setup = load_setup(sources);
  for (const std::string& note : setup.config.notes) logging::warn(note);
  refuse_drift(setup, checkpoint, arguments.allow_drift);
  RunOptions options = run_options(setup, arguments.quiet);
  options.run_dir = run_of(checkpoint);
  options.resume = checkpoint.info.offsets;
  Trainer trainer(setup.config, *setup.row, *setup.environment, setup.device);
  trainer.restore(read_snapshot(checkpoint));
  const std::string reason = finished(setup.config, trainer);
  if (!reason.empty() && was_finished(options.run_dir)) {
    logging::info(concat("run ", options.run_dir.string(), " has finished (", reason, " after ",
                         checkpoint.info.counts.env_steps,
                         " steps): nothing is left to do; --total_steps N goes on"));
    return 0;
  }
  Run run(options);
  logging::info(concat("going on with ", options.run_dir.string(), " on ", describe(setup.device),
                       " after iteration ", checkpoint.info.counts.iteration, ", ",
                       checkpoint.info.counts.env_steps, " steps"));
  run.write_config(print_config(setup.config, setup.describe(), false));
  Checkpoints checkpoints(run.folder() / "checkpoints", setup.config.saving.keep_last);
  checkpoints.continue_from(checkpoint);
  return run_training(arguments, setup, trainer, run, checkpoints);
}

}  // namespace

int train(const CommandLine& line) {
  TrainArguments arguments;
  if (!arguments.parse(line)) return 0;
  if (arguments.quiet) logging::quiet();
  if (!arguments.fault.empty()) static_cast<void>(parse_fault(arguments.fault));
  ConfigSources sources = arguments.config.sources(!arguments.resume);
  if (!arguments.resume) {
    if (!arguments.print_only) return begin(arguments, sources);
    const Setup setup = load_environment(sources);
    print(print_config(setup.config, setup.describe()));
    return 0;
  }
  std::string run_dir;
  std::erase_if(sources.overrides, [&](const Override& one) {
    if (one.option == "--run_dir") run_dir = one.text.substr(1, one.text.size() - 2);
    return one.option == "--run_dir";
  });
  const std::filesystem::path base = std::filesystem::path("runs") / sources.env;
  const Checkpoint checkpoint = find_checkpoint(arguments.resume_from, run_dir, base);
  sources.file = checkpoint.folder / "config.yaml";
  sources.shipped = false;
  if (!arguments.print_only) return go_on(arguments, checkpoint, sources);
  const Setup setup = load_environment(sources);
  print(print_config(setup.config, setup.describe()));
  return 0;
}

}  // namespace wd::cli
