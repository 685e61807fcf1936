// train_arguments.cpp: reads the options of training and refuses those that exclude each other.
#include "src/cli/train_arguments.h"

#include <cstdlib>
#include <vector>

#include "src/cli/output.h"
#include "src/cli/seeds.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

constexpr Range kJobs = {1, 1e6};
constexpr const char* kSeedsOfWorker =
    "--seeds starts trainings of its own, and this is a worker of a job (RANK is set, or SLURM_NTASKS): "
    "start it once, outside of torchrun and srun";

const std::vector<Shorthand> kShorthands = {
    {"--seed", "trainer.seed"},
    {"--num_envs", "trainer.num_envs"},
    {"--train_batch_size", "trainer.train_batch_size"},
    {"--total_steps", "trainer.total_steps"},
    {"--max_seconds", "trainer.max_seconds"},
    {"--stop_return", "trainer.stop_return"},
    {"--run_dir", "saving.run_dir"},
    {"--log_every", "saving.metrics_log_freq"},
};

// Titles of --help.
const std::vector<std::pair<std::string, std::vector<std::string>>> kGroups = {
    {"Run",
     {"--help", "ENV", "--env", "--config", "--algorithm", "--set", "--resume", "--allow_drift",
      "--warm_start", "--run_dir", "--log_every", "--trust", "--quiet", "--print_config"}},
    {"Training",
     {"--seed", "--seeds", "--num_envs", "--train_batch_size", "--total_steps", "--max_seconds",
      "--stop_return"}},
    {"Machine", {"--device", "--threads", "--jobs", "--auto_scale", "--strict_device", "--profile"}},
    {"Workers",
     {"--num_gpus", "--num_workers", "--num_nodes", "--node_index", "--rendezvous", "--run_id",
      "--max_restarts"}},
    {"Time limits of workers",
     {"--grace_seconds", "--start_seconds", "--step_seconds", "--checkpoint_seconds"}},
    {"", {"--fault"}}};

constexpr const char* kFooter =
    R"(Examples:
  @ train cartpole                                      into runs/cartpole/
  @ train tag_gridworld --max_seconds 10m --set env.grid_length=10
  @ train --resume latest --total_steps 2M              go on with the newest run

Other settings:
  @ config            lists all that --set takes; `@ config lr` explains one
  @ envs NAME         lists those of an environment
  @ train cartpole --print_config     shows their values; docs/configuration.md
)";

}  // namespace

bool TrainArguments::parse(const CommandLine& line) {
  Arguments arguments(line, "train",
                      "Train policies in an environment; the run folder gets weights, metrics, configuration "
                      "and checkpoints.");
  config.add_word(arguments);
  config.add_to(arguments, kShorthands);
  arguments.optional_value(
      "--resume", resume_from, resume, "RUN|CHECKPOINT",
      "go on from a run's newest checkpoint, or from this one; no value: the newest run; auto: that of "
      "--run_dir, or begin it");
  arguments.flag("--allow_drift", allow_drift,
                 "with --resume: allow settings that differ from those of the checkpoint");
  arguments.repeatable(
      "--warm_start", warm_start, "RUN|CHECKPOINT",
      "start a new run with the weights of this run or checkpoint; POLICY=RUN:NAME, once for each: a "
      "policy with those of another one");
  arguments.flag("-q,--quiet", quiet, "no progress on stdout, only warnings on stderr");
  arguments.flag("--print_config", print_only, "show every setting and its source, then exit");
  arguments.flag("--strict_device", strict_device,
                 "fail if the loop allocates host memory after warm-up or, on a GPU, copies to or from the "
                 "host or waits");
  arguments.optional_value(
      "--profile", profile, profiles, "INT",
      "after two iterations, profile the next INT (10); writes profile.json into the run folder");
  std::string seeds_text, jobs_text;
  arguments.option(
      "--seeds", seeds_text, "SEEDS",
      "one training for each seed, 1..10 or 1,3,7..9, in RUN_DIR/SEED, and a report of all; with "
      "--resume auto they go on");
  arguments.option("--jobs", jobs_text, "auto|INT",
                   "with --seeds: trainings at a time (auto: one for each processor, or for each GPU)");
  autoscale.add_to(arguments);
  launch.add_to(arguments);
  arguments.option("--fault", fault, "FAULT", "what a test lets go wrong");
  for (const auto& [title, options] : kGroups) arguments.group(title, options);
  arguments.footer(filled(kFooter, {{"@", line.program}}));
  if (!arguments.parse()) return false;
  config.take_word(arguments);
  const bool several = !seeds_text.empty();
  if (several && std::getenv("RANK") != nullptr) throw UsageError(kSeedsOfWorker);
  launch.read();
  autoscale.read();
  if (profiles) parse_integer("--profile", profile, kProfiledIterations);
  if (several) seeds = parse_seeds(seeds_text);
  if (!jobs_text.empty() && jobs_text != "auto")
    jobs = static_cast<std::size_t>(parse_integer("--jobs", jobs_text, kJobs));
  const bool only_resumes = resume && !resumes_or_begins();
  const std::pair<bool, const char*> mistakes[] = {
      {only_resumes && !config.file.empty(),
       "--resume and --config exclude each other: a run goes on with its own configuration; change it by "
       "--set"},
      {only_resumes && !warm_start.empty(), "--resume and --warm_start exclude each other"},
      {only_resumes && autoscale.asked(),
       "--resume and --auto_scale exclude each other: a run goes on with its own replicas"},
      {print_only && autoscale.asked(),
       "--print_config and --auto_scale exclude each other: what a search chooses is in the run's "
       "config.yaml"},
      {strict_device && profiles,
       "--strict_device and --profile exclude each other: each listens to what the other does"},
      {several && only_resumes,
       "--seeds and --resume RUN exclude each other: --resume auto goes on with all seeds of --run_dir"},
      {several && (profiles || autoscale.asked() || launch.options(kDeviceCpu).num_nodes > 1),
       "--seeds excludes --profile, --auto_scale and --num_nodes: give them with one seed; --auto_scale "
       "then prints --set options, which --seeds takes"},
      {several && !launch.membership().alone(), kSeedsOfWorker},
      {!several && !jobs_text.empty(), "--jobs is for --seeds"},
      {allow_drift && !resume, "--allow_drift is for --resume"}};
  for (const auto& [made, message] : mistakes)
    if (made) throw UsageError(message);
  return true;
}

}  // namespace wd::cli
