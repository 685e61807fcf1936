// train.cpp: `wdtrain --env NAME`: trains, and leaves a run folder.
#include <csignal>

#include "src/cli/output.h"
#include "src/cli/setup.h"
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
}

// The exit code: 0, or 128 + n where signal n ended training.
int run_training(const Setup& setup, bool quiet) {
  Trainer trainer(setup.config, *setup.row, *setup.environment, setup.device);
  Run run(run_options(setup, quiet));
  logging::info(concat("training ", setup.config.name, " on ", describe(setup.device), "; run folder ",
                       run.folder().string()));
  run.write_config(print_config(setup.config, setup.describe(), false));
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, remember);
  const std::string reason = wd::train(setup.config, trainer, run, [] { return received != 0; });
  logging::info(concat("ended by ", reason, "; results are in ", run.folder().string()));
  return reason == "signal" ? 128 + received : 0;
}

}  // namespace

int train(const CommandLine& line) {
  Arguments arguments(
      line, "", "Train policies in an environment; the run folder gets weights, metrics and configuration.");
  ConfigOptions options;
  bool quiet = false, print_only = false;
  options.add_to(arguments, kShorthands);
  arguments.flag("-q,--quiet", quiet, "no progress on stdout, only warnings on stderr");
  arguments.flag("--print_config", print_only, "show every setting and where it came from, and do not train");
  if (!arguments.parse()) return 0;
  const ConfigSources sources = options.sources();
  if (print_only) {
    const Setup setup = load_environment(sources);
    print(print_config(setup.config, setup.describe()));
    return 0;
  }
  if (quiet) logging::quiet();
  const Setup setup = load_setup(sources);
  for (const std::string& note : setup.config.notes) logging::warn(note);
  return run_training(setup, quiet);
}

}  // namespace wd::cli
