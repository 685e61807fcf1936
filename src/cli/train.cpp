// train.cpp: `wdtrain --env NAME`: trains and writes a run folder; --resume continues a run.
#include "src/trainer/train.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>

#include "src/autoscale/memory_needed.h"
#include "src/autoscale/probe.h"
#include "src/base/atomic_file.h"
#include "src/base/files.h"
#include "src/base/join.h"
#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/name.h"
#include "src/base/program_name.h"
#include "src/base/terminal.h"
#include "src/cli/autoscale.h"
#include "src/cli/batch_view.h"
#include "src/cli/launch.h"
#include "src/cli/output.h"
#include "src/cli/population.h"
#include "src/cli/resume.h"
#include "src/cli/runs.h"
#include "src/cli/seeds.h"
#include "src/cli/setup.h"
#include "src/cli/train_arguments.h"
#include "src/device/device.h"
#include "src/device/out_of_memory.h"
#include "src/distributed/same_config.h"
#include "src/evaluation/training_evaluator.h"
#include "src/outside/trust.h"
#include "src/play/replay.h"
#include "src/plugin/plugin.h"
#include "src/recorded/digest.h"
#include "src/report/format.h"
#include "src/report/plain_error.h"
#include "src/run/folder.h"
#include "src/run/lock.h"
#include "src/run/run.h"
#include "src/run/start.h"
#include "src/run_report/report.h"
#include "src/run_report/state.h"
#include "src/trainer/trainable.h"
#include "src/worker/fault.h"
#include "src/worker/silence.h"
#include "wd/heartbeat.h"
#include "wd/trainer.h"
#include "wd/weights.h"

namespace wd::cli {
namespace {

RunOptions run_options(const Experiment& setup, bool quiet) {
  const Config& config = setup.config;
  RunOptions options;
  options.env = config.name;
  options.device = setup.device.is_cuda() ? "cuda" : "cpu";
  options.seed = static_cast<std::uint64_t>(config.trainer.seed);
  if (setup.device.is_cuda())
    for (int gpu = 0; gpu < count_gpus(); ++gpu) options.gpus.push_back(gpu_name(gpu));
  options.run_dir = config.saving.run_dir;
  options.base = config.saving.base();
  options.total_steps = config.trainer.total_steps;
  options.max_seconds = config.trainer.max_seconds;
  options.quiet = quiet;
  return options;
}

// The first signal that asked this program to end; 0: none. Training ends after the current iteration. A
// second INT or TERM ends it at once; HUP never does: when a terminal closes, the kernel sends it and the
// shell once more, and systemd sends it after TERM. Among workers, the launcher handles this, because a
// terminal's Ctrl-C reaches each worker twice: directly and through the launcher.
constexpr int kStopSignals[] = {SIGINT, SIGTERM, SIGHUP};
volatile std::sig_atomic_t received = 0;
volatile std::sig_atomic_t among_others = 0;
volatile std::sig_atomic_t erases = 0;

void remember(int signal) {
  const bool stopping = received != 0;
  if (!stopping) received = signal;
  if (among_others != 0 || (signal == SIGHUP && stopping)) return;
  // From here on, these end the process; an ignored one (nohup) stays ignored.
  for (const int any : {SIGINT, SIGTERM}) {
    struct sigaction action{};
    if (signal != SIGHUP && ::sigaction(any, nullptr, &action) == 0 && action.sa_handler == remember)
      std::signal(any, SIG_DFL);
  }
  constexpr std::string_view kErase = kEraseLive;
  constexpr std::string_view kClosed = "\nhung up (SIGHUP): stopping after this iteration\n";
  constexpr std::string_view kMessage = "\nstopping after this iteration; once more to stop at once\n";
  if (erases != 0) static_cast<void>(::write(STDERR_FILENO, kErase.data(), kErase.size()));
  const std::string_view message = (signal == SIGHUP ? kClosed : kMessage).substr(erases != 0 ? 1 : 0);
  static_cast<void>(::write(STDERR_FILENO, message.data(), message.size()));
}

// With device auto, this machine's GPU counts; a named device counts whether or not this machine has it, so
// that configurations for other machines can be printed. Only tf32 asks for a GPU.
bool will_use_gpu(const Config& config) {
  if (config.trainer.device != kDeviceAuto) return config.trainer.device == kDeviceCuda;
  return config.trainer.precision != kTf32 || select_device(DeviceRequest::kAuto, 0).is_cuda();
}

scaling::Job job_of(const Experiment& setup, const Membership& self) {
  scaling::Job job{setup.config, *setup.environment, setup.device, self.world_size, self.local_world_size};
  if (self.rank == 0)
    job.evaluation = evaluation_device(setup.config, *setup.environment, setup.device, self.local_rank);
  return job;
}

// Checks memory before the workers meet, when none of them has allocated anything.
Experiment load_setup_that_fits(const ConfigSources& sources, const Membership& self) {
  Experiment setup = load_setup(sources, self);
  leave_unread_state_out(setup);
  require_trainable(setup.config, *setup.environment, setup.device.is_cuda(), self.world_size);
  scaling::check_memory(job_of(setup, self));
  return setup;
}

// Calls f. If memory runs out there, the error also says what takes how much, and what would fit.
template <typename F>
auto explaining_memory(const scaling::Job& job, const F& f) {
  try {
    return f();
  } catch (const std::exception& error) {
    if (!ran_out_of_memory(error)) throw;
    throw std::runtime_error(
        concat(plain_message(error), "; ", scaling::memory_line(job), "; ", scaling::largest_that_fits(job)));
  }
}

// This process's command, with the run that "latest" means now in its place: later it means another one.
std::vector<std::string> recorded_command() {
  constexpr std::string_view kOption = "--warm_start", kJoined = "--warm_start=";
  const auto chosen = [](const std::string& argument) {
    WarmStart start = parse_warm_starts({argument}, "").front();
    start.run = one_run(start.run);
    return start.text();
  };
  std::vector<std::string> command = own_command();
  for (std::size_t k = 1; k < command.size(); ++k) {
    if (command[k - 1] == kOption) command[k] = chosen(command[k]);
    if (command[k].starts_with(kJoined))
      command[k] = concat(kJoined, chosen(command[k].substr(kJoined.size())));
  }
  return command;
}

// The parts of a worker, in the order in which they are built.
struct TrainingWorker {
  Experiment setup;
  ProcessGroup group;
  bool goes_on;        // as rank 0 has found
  std::string memory;  // needed, and available before anything was allocated
  std::string config;  // effective configuration, as in config.yaml
  std::unique_ptr<Trainer> trainer;
  std::filesystem::path folder;  // of the run, on all ranks
  std::unique_ptr<Run> run;      // rank 0 only
  std::unique_ptr<Checkpoints> checkpoints;

  // found: on rank 0, whether it has chosen a checkpoint, whose configuration replaces that of the other
  // ranks.
  TrainingWorker(const TrainArguments& arguments, const ConfigSources& sources, bool found, Experiment loaded,
                 ProcessGroup joined)
      : setup(std::move(loaded)),
        group(std::move(joined)),
        goes_on(group.broadcast(found ? "goes on" : "") == "goes on"),
        memory(scaling::memory_line(job_of(setup, arguments.launch.membership()))) {
    if (goes_on) take_choice(sources);
    config = print_config(setup.config, setup.describe(), false);
    check_same_config(group, config);
    if (group.leads()) {
      if (!setup.config.inherited.empty()) logging::info(setup.config.inherited);
      for (const std::string& note : setup.config.notes) logging::warn(note);
    }
    trainer = explaining_memory(job_of(setup, arguments.launch.membership()), [&] {
      return std::make_unique<Trainer>(setup.config, *setup.environment, setup.device, group);
    });
  }
  // All ranks. The device and the number of threads stay.
  void take_choice(ConfigSources sources) {
    if (!sources.file.empty()) sources.file = std::filesystem::absolute(sources.file).string();
    sources.file = group.broadcast(sources.file);
    if (group.leads()) sources.checkpoint = std::filesystem::absolute(sources.checkpoint);
    sources.checkpoint = group.broadcast(sources.checkpoint.string());
    if (group.leads()) return;
    Experiment chosen = load_environment(sources);
    chosen.device = setup.device;
    setup = std::move(chosen);
  }
  std::string place() const {
    return concat(describe(setup.device),
                  group.size() > 1 ? concat(" each, ", group.size(), " workers") : "");
  }
  // Rank 0 creates or reopens the folder. Afterwards all ranks know its path. All ranks.
  void open(RunOptions options) {
    outside::remember(*setup.environment, setup.config.name);
    options.workers = group.size();
    nlohmann::ordered_json start = run::describe_start(recorded_command(), group.size());
    start["opponents"] = opponents_of(setup);
    options.start = dump(start);
    if (group.leads()) run = std::make_unique<Run>(options);
    folder = group.broadcast(run ? std::filesystem::absolute(run->folder()).string() : "");
    if (!run) return heartbeat::run_folder(folder.string());
    run->write_config(config);
    plugin::copy_parts(setup.config.name, run->folder() / "source");
    checkpoints = std::make_unique<Checkpoints>(run->folder() / "checkpoints", setup.config.saving.keep_last,
                                                setup.config.saving.replay == kReplayLast);
  }
};

// Writes one episode of the policies to RUN/rollouts. A page that cannot be written does not end training.
void record_episode(const TrainingWorker& worker, TrainingEvaluator& evaluator, std::int64_t iteration) {
  const std::filesystem::path folder = worker.run->folder() / "rollouts";
  const std::filesystem::path page = folder / concat("iteration_", iteration, ".html");
  Match match = evaluator.match();
  match.episodes = 1;
  Rollout rollout = rollout_of(*worker.setup.environment, worker.run->folder().string());
  record(evaluator.evaluator(), match, worker.setup.config.play.max_steps, rollout);
  worker.run->attempt("rollouts", [&] {
    make_own_folder(folder);
    write_file_atomically(page, rollout_page(rollout), Durability::kReplace);
  });
}

// Writes the episode in which a number was not finite to RUN/rollouts.
void show_evidence(const Experiment& setup, const std::filesystem::path& run, const Evidence& evidence) {
  const Rollout rollout = replay(setup.config, *setup.environment, evidence);
  const std::filesystem::path page =
      run / "rollouts" /
      concat("failed_in_iteration_", evidence.iteration, "_replica_", evidence.replica, ".html");
  make_own_folder(page.parent_path());
  write_file_atomically(page, rollout_page(rollout), Durability::kReplace);
  logging::error(concat(page.string(), " shows the last ",
                        report::counted(rollout.episodes[0].record.steps, "step"), " of replica ",
                        evidence.replica, ": open it in a browser"));
}

// Writes RUN/report.html. Without it, the run is complete too.
void write_report(const std::filesystem::path& run) {
  try {
    if (!run_report::write_run_report(run)) {
      logging::info(concat("no report is written, because metrics.jsonl is large: ", program_command(),
                           " report ", run.string(), " writes one"));
      return;
    }
    logging::info(concat("report: ", (run / "report.html").string()));
  } catch (const std::exception& error) {
    logging::warn(concat("the report is not written: ", error.what()));
  }
}

// A process that was killed at its very end left no report, or an older one. The caller has the run's lock.
void complete_report(const std::filesystem::path& run) {
  std::error_code missing;
  const auto summary = std::filesystem::last_write_time(run / "summary.json", missing);
  const auto page = std::filesystem::last_write_time(run / "report.html", missing);
  if (missing || page < summary) write_report(run);
}

// What the weights file of this name would hold now.
std::vector<NamedTensor> current_weights(Trainer& trainer, const std::string& name) {
  for (std::size_t p = 0; p < trainer.policies().size(); ++p) {
    const Policy& policy = trainer.policies()[p];
    if (policy.name() == name) return policy.saved();
    if (average_name(policy.name()) == name) return trainer.average(p);
  }
  throw std::logic_error(concat("there are no weights of ", name));
}

// What the return of the first policy cannot decide.
void tell_what_best_means(const TrainingWorker& worker) {
  const Config& config = worker.setup.config;
  const PolicySettings& first = config.policies[0];
  if (config.trainer.stop_on == kStopOnEval) return;
  const char* const remedy =
      "trainer.stop_on=eval with eval.every and eval.opponent judges it in episodes of their own";
  if (first.roles.size() > 1)
    logging::info(concat("policy ", first.name, " acts for ", join(first.roles, " and "),
                         ": if these are opponents, its return says nothing of it and decides neither "
                         "stop_return nor checkpoints/best; ",
                         remedy));
  if (worker.trainer->replicas().is_outside())
    logging::info(concat("checkpoints/best is the newest one, since no further environments of ", config.name,
                         " are made to judge it; ", remedy));
}

// Returns the exit code: 0, or 128 + n if signal n ended training.
int run_training(const TrainArguments& arguments, TrainingWorker& worker) {
  const Membership& self = arguments.launch.membership();
  among_others = self.alone() ? 0 : 1;
  erases = is_live_terminal(STDERR_FILENO) ? 1 : 0;
  for (const int signal : kStopSignals) {
    // Keep ignoring it, as nohup requires.
    if (std::signal(signal, remember) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
  TrainOptions options{worker.setup.config};
  options.interrupted = [] { return static_cast<int>(received); };
  options.strict_device = arguments.strict_device;
  if (!arguments.fault.empty()) {
    const Fault fault = parse_fault(arguments.fault);
    if (fault.rank == self.rank && self.restart < fault.times) options.fault = fault;
  }
  if (arguments.profiles && worker.run) {
    options.profile = static_cast<int>(parse_integer("--profile", arguments.profile, kProfiledIterations));
    options.profiled = [&](const std::string& table, const std::string& json) {
      write_file_atomically(worker.run->folder() / "profile.json", json, Durability::kReplace);
      worker.run->make_room();
      print(table);
    };
  }
  const scaling::Job job = job_of(worker.setup, self);
  TrainingEvaluator evaluator(
      worker.setup.config, *worker.setup.environment,
      [&](const std::string& name) { return current_weights(*worker.trainer, name); },
      job.evaluation.value_or(worker.setup.device));
  options.evaluate = [&] { return evaluator.evaluate(); };
  // An environment outside would have to be made a second time, and a simulator may not have that.
  if (!worker.trainer->replicas().is_outside())
    options.play_fresh = [&](int first, int episodes) {
      return evaluator.play_fresh(worker.trainer->counts().iteration, first, episodes);
    };
  options.record = [&](std::int64_t iteration) { record_episode(worker, evaluator, iteration); };
  options.show = [&](const Evidence& evidence) { show_evidence(worker.setup, worker.folder, evidence); };
  if (worker.run) logging::info(worker.memory);
  if (worker.run) tell_what_best_means(worker);
  const TrainEnd end = explaining_memory(
      job, [&] { return wd::train(options, *worker.trainer, worker.run.get(), worker.checkpoints.get()); });
  if (worker.run) {
    const std::string folder = worker.run->folder().string();
    const bool stopped = end.reason == "signal" || end.reason == "max_seconds";
    logging::info(concat("ended by ", end.reason, "; results are in ", folder,
                         stopped ? concat("; --resume ", shell_word(folder), " goes on") : ""));
    logging::info(concat("watch the policies: ", program_command(), " play --run ", shell_word(folder)));
    write_report(worker.run->folder());
  }
  return end.reason == "signal" ? 128 + end.signal : 0;
}

// left: the lock of the folder that a killed start left, or null.
int begin(const TrainArguments& arguments, TrainingWorker& worker, std::shared_ptr<run::Lock> left) {
  if (!arguments.warm_start.empty()) {
    if (worker.group.leads())
      warm_start(parse_warm_starts(arguments.warm_start, ""), worker.setup.config,
                 worker.trainer->policies());
    worker.trainer->start_from_weights();
  }
  RunOptions options = run_options(worker.setup, arguments.quiet);
  if (const std::string& folder = arguments.launch.membership().restart_dir; !folder.empty()) {
    options.run_dir = folder;  // of a start that failed before its first checkpoint
    options.resume = RunOffsets{};
  } else if (left) {
    options.lock = std::move(left);
    options.resume = RunOffsets{};
  }
  worker.open(options);
  if (worker.run) {
    arguments.autoscale.write_file(worker.run->folder());
    logging::info(concat("training ", worker.setup.config.name, " on ", worker.place(), "; run folder ",
                         worker.run->folder().string()));
  }
  return run_training(arguments, worker);
}

void refuse_drift(const Experiment& now, const Checkpoint& checkpoint, bool allowed) {
  const Spec spec = now.environment->spec();
  const Experiment then = load_environment({.env = is_source_file(now.config.name) ? now.config.name : "",
                                            .file = checkpoint.folder / "config.yaml",
                                            .shipped = false,
                                            .of_run = true,
                                            .spec = &spec});
  const std::vector<std::string> differences = drift(now, then);
  if (differences.empty()) return;
  std::string list;
  for (const std::string& difference : differences) list += "\n  " + difference;
  if (!allowed) {
    throw UsageError("these settings differ from the checkpoint's, so that this would be another training:" +
                     list + "\nleave them as they were, or give --allow_drift");
  }
  if (now.config.trainer.precision != then.config.trainer.precision) {
    throw UsageError(
        "trainer.precision decides how a checkpoint's rows and moments are laid out: go on with the "
        "precision it was made with, or begin a new run with its weights (--warm_start)");
  }
  for (const PolicySettings& policy : now.config.policies) {
    const auto before = std::ranges::find(then.config.policies, policy.name, &PolicySettings::name);
    if (before != then.config.policies.end() && (before->num_opponents() > 0) != (policy.num_opponents() > 0))
      throw UsageError(concat("opponents.", policy.name, ": a checkpoint made ",
                              policy.num_opponents() > 0 ? "without opponents cannot go on with some"
                                                         : "with opponents cannot go on without",
                              ": begin a new run with its weights (--warm_start)"));
    if (before != then.config.policies.end() && (before->average > 0.0) != (policy.average > 0.0))
      throw UsageError(concat("policy.", policy.name, ".average: a checkpoint made ",
                              policy.average > 0.0 ? "without an average cannot go on with one"
                                                   : "with an average cannot go on without",
                              ": begin a new run with its weights (--warm_start)"));
  }
  if (now.config.trainer.observations != then.config.trainer.observations) {
    throw UsageError(
        "trainer.observations decides what a checkpoint holds of them: go on with what it was made with, or "
        "begin a new run with its weights (--warm_start)");
  }
  logging::warn("these settings differ from the checkpoint's:" + list);
}

// Whether training reads the recordings that the checkpoint learned from, as far as it says which.
bool has_its_recordings(const Config& config, const Checkpoint& checkpoint, bool drift_allowed) {
  bool same = true;
  const std::map<std::string, std::string>& before = checkpoint.info.recordings;
  for (const auto& [policy, digest] : recording_digests(config)) {
    const auto found = before.find(policy);
    if (found == before.end() || found->second == digest) continue;
    const std::string said =
        concat((std::filesystem::path(config.trainer.offline) / policy).string(),
               ": holds another recording than the one that checkpoint ", checkpoint.name(), " learned from");
    if (!drift_allowed)
      throw UsageError(concat(said,
                              ", so that this would be another training: put that one back, or begin a "
                              "new run with the weights (--warm_start), or give --allow_drift"));
    logging::warn(said + ": priorities of its transitions are not taken over");
    same = false;
  }
  return same;
}

// Returns the options with which a finished training run continues.
std::string continue_options(const Config& config, const Trainer& trainer) {
  std::string options = trainer.return_reached() ? "--stop_return none" : "";
  if (trainer.counts().env_steps >= config.trainer.total_steps)
    options += options.empty() ? "--total_steps N" : " --total_steps N";
  return options;
}

using PolicyFiles = std::map<std::string, std::filesystem::path>;

// The replay memories that a checkpoint holds, by policy.
PolicyFiles replay_files(const Checkpoint& checkpoint) {
  PolicyFiles files;
  for (const auto& [name, digest] : checkpoint.files)
    if (name.starts_with(kReplayFolder))
      files[std::filesystem::path(name).stem().string()] = checkpoint.folder / name;
  return files;
}

// The run that goes on.
struct Origin {
  std::filesystem::path run;             // empty: a new run begins
  std::shared_ptr<run::Lock> lock;       // rank 0
  std::optional<Checkpoint> checkpoint;  // rank 0
  std::string argument;                  // of --resume

  // Locks the run, and only then chooses: a process that still trains there could write a newer checkpoint,
  // or remove this one.
  void choose(bool locks, bool allow_drift) {
    if (locks) lock = std::make_shared<run::Lock>(run);
    checkpoint = find_checkpoint(argument, run, allow_drift);
  }
  // The same for --resume auto. Without a checkpoint, a new run begins, in what a killed start left if it is
  // locked.
  void choose_or_begin(const std::filesystem::path& folder, bool locks, bool allow_drift) {
    const auto trained = [&] { return !list_checkpoints(folder / "checkpoints").empty(); };
    if (run::look_at_lock(folder).host.empty() && !trained()) return;
    if (locks) lock = std::make_shared<run::Lock>(folder, run::Lock::kLongPatience);
    if (trained()) {
      run = find_run(folder.string(), "", "");
      checkpoint = find_checkpoint("", run, allow_drift);
    } else if (!run::is_left_by_start(folder)) {
      lock.reset();  // as any other folder that holds something, it is refused
    }
  }
  // Of the checkpoint; on ranks that do not choose, one of the run, until rank 0 says which it is.
  std::filesystem::path folder() const {
    return checkpoint ? checkpoint->folder : list_checkpoints(run / "checkpoints").front();
  }
};

// Says how the run goes on, and prepares its checkpoints.
void tell_origin(TrainingWorker& worker, const Checkpoint& checkpoint, const run_report::RunState& before,
                 bool remembers) {
  logging::info(concat("going on with ", worker.run->folder().string(), " on ", worker.place(),
                       " after iteration ", checkpoint.info.counts.iteration, ", ",
                       checkpoint.info.counts.env_steps, " steps"));
  for (const std::string& damaged : checkpoint.damaged_replays)
    logging::warn(concat(damaged, ": training goes on without this replay memory"));
  if (!remembers)
    logging::warn(concat(
        "checkpoint ", checkpoint.name(),
        " does not hold the replay memories (saving.replay): they are filled anew, and training is not "
        "the same as if it had never stopped"));
  const double reached = before.number("iterations");  // NaN if it is not known
  if (const double lost = reached - static_cast<double>(checkpoint.info.counts.iteration); lost > 0.0) {
    logging::info(concat("the run had come to iteration ", static_cast<std::int64_t>(reached), ": ",
                         report::counted(static_cast<std::int64_t>(lost), "iteration"),
                         lost == 1.0 ? " is" : " are",
                         " made again (saving.checkpoint_freq and saving.checkpoint_seconds say how many "
                         "that can be)"));
  }
  if (worker.trainer->replicas().is_outside())
    logging::warn(concat("the state of ", worker.setup.config.name,
                         " is not in checkpoints: all replicas begin new episodes, and training is not the "
                         "same as if it had never stopped"));
  if (checkpoint.info.world_size != worker.group.size()) {
    logging::warn(concat("the checkpoint was written by ", checkpoint.info.world_size, " workers, ",
                         worker.group.size(),
                         " go on: the same replicas, but sums in another order, and so other last bits"));
  }
  worker.checkpoints->continue_from(checkpoint);
}

int resume(const TrainArguments& arguments, Origin& origin, TrainingWorker& worker) {
  const Config& config = worker.setup.config;
  const std::optional<Checkpoint>& checkpoint = origin.checkpoint;
  // A restart continues with settings that were accepted at the start.
  if (checkpoint && arguments.launch.membership().restart_dir.empty())
    refuse_drift(worker.setup, *checkpoint, arguments.allow_drift);
  // Priorities of other transitions would be wrong.
  const bool keeps_memory = checkpoint && (!arguments.launch.membership().restart_dir.empty() ||
                                           has_its_recordings(config, *checkpoint, arguments.allow_drift));
  RunOptions options = run_options(worker.setup, arguments.quiet);
  options.run_dir = origin.run;
  options.lock = std::move(origin.lock);
  if (checkpoint) options.resume = checkpoint->info.offsets;
  const SnapshotForms forms = worker.trainer->snapshot_forms();
  worker.trainer->restore(checkpoint ? read_snapshot(*checkpoint, forms) : Snapshot());
  const bool remembers =
      worker.trainer->read_memory(keeps_memory ? replay_files(*checkpoint) : PolicyFiles());
  const std::string reason = finished(config, *worker.trainer);
  // A process that was killed at its very end may not have completed its files.
  const auto before = checkpoint ? run_report::read_state(origin.run) : run_report::RunState();
  if (worker.group.broadcast(!reason.empty() && before.status == "finished" ? "finished" : "") ==
      "finished") {
    if (checkpoint) {
      logging::info(concat("run ", origin.run.string(), " has finished (", reason, " after ",
                           checkpoint->info.counts.env_steps, " steps): nothing is left to do; go on with ",
                           continue_options(config, *worker.trainer)));
      complete_report(origin.run);
    }
    return 0;
  }
  worker.open(std::move(options));
  if (checkpoint) tell_origin(worker, *checkpoint, before, remembers || !keeps_memory);
  return run_training(arguments, worker);
}

// What --run_dir says; empty: it is not given.
std::string given_run_dir(const ConfigSources& sources) {
  std::string run_dir;
  for (const Override& one : sources.overrides)
    if (one.option == "--run_dir") run_dir = one.text.substr(1, one.text.size() - 2);
  for (std::size_t at = 0; (at = run_dir.find("''", at)) != std::string::npos; ++at) run_dir.erase(at, 1);
  return run_dir;
}

// --resume auto. The command has the whole configuration, and resume() compares it with the checkpoint's.
Origin find_own_run(const TrainArguments& arguments, ConfigSources& sources) {
  Origin origin;
  const std::filesystem::path folder = load_environment(sources).config.saving.run_dir;
  if (folder.empty())
    throw UsageError("--resume auto goes on with the run of --run_dir or begins it: give --run_dir FOLDER");
  if (std::getenv(scaling::kProbeVariable) != nullptr) return origin;  // its parent has the lock
  if (arguments.launch.leads())
    origin.choose_or_begin(folder, !arguments.print_only, arguments.allow_drift);
  else if (!list_checkpoints(folder / "checkpoints").empty())
    origin.run = folder;
  if (origin.checkpoint) sources.checkpoint = origin.folder();
  return origin;
}

// Finds the run that goes on, if one does, and lets `sources` be its configuration. Rank 0 chooses the
// checkpoint; the others begin with the run's own configuration until they learn which one it is.
Origin find_origin(TrainArguments& arguments, ConfigSources& sources) {
  Origin origin;
  if (const std::filesystem::path restart = arguments.launch.membership().restart_dir; !restart.empty()) {
    const bool trained = !list_checkpoints(restart / "checkpoints").empty();
    if (!trained && !is_population(restart)) return origin;
    // This command began it.
    sources = {.file = restart / "config.yaml", .shipped = false, .trusted = true};
    if (!trained) return origin;  // each member finds its own run
    origin.run = restart;
    if (arguments.launch.leads()) origin.choose(true, true);
    sources.checkpoint = origin.folder();
    return origin;
  }
  if (arguments.resumes_or_begins()) return find_own_run(arguments, sources);
  if (!arguments.resume) return origin;
  if (is_population(arguments.resume_from)) {
    sources.file = std::filesystem::path(arguments.resume_from) / "config.yaml";
    sources.shipped = false;
    sources.of_run = true;
    sources.drifts = arguments.allow_drift;
    sources.overrides.push_back({"saving.run_dir", yaml_text(arguments.resume_from), "--run_dir"});
    arguments.resume_from = "auto";
    return origin;
  }
  const std::string run_dir = given_run_dir(sources);
  std::erase_if(sources.overrides, [](const Override& one) { return one.option == "--run_dir"; });
  origin.argument = arguments.resume_from;
  origin.run = find_run(origin.argument, run_dir, std::filesystem::path("runs") / folder_name(sources.env));
  if (arguments.launch.leads()) origin.choose(!arguments.print_only, arguments.allow_drift);
  sources.file = (origin.checkpoint ? origin.checkpoint->folder : origin.run) / "config.yaml";
  sources.checkpoint = origin.folder();
  sources.shipped = false;
  sources.of_run = true;
  sources.drifts = arguments.allow_drift;
  return origin;
}

int train_one(const TrainArguments& arguments, const ConfigSources& sources, Origin origin, Experiment setup,
              ProcessGroup group) {
  TrainingWorker worker(arguments, sources, !origin.run.empty(), std::move(setup), std::move(group));
  return worker.goes_on ? resume(arguments, origin, worker)
                        : begin(arguments, worker, std::move(origin.lock));
}

// Refuses what a population cannot do and what a member's settings would be refused for, before anything
// begins. Throws UsageError.
void check_population(const TrainArguments& arguments, const ConfigSources& sources,
                      const Experiment& setup) {
  const Config& config = setup.config;
  if (config.trainer.population == 0) return;
  const std::pair<bool, const char*> mistakes[] = {
      {!arguments.seeds.empty(), "--seeds: member k of a population has the seed trainer.seed + k already"},
      {arguments.autoscale.asked(),
       "--auto_scale: let it choose for one training, and give the --set options that it prints"},
      {arguments.profiles, "--profile, which measures one training: give it to one"},
      {arguments.strict_device, "--strict_device, which listens to one training: give it to one"}};
  for (const auto& [made, message] : mistakes)
    if (made) throw UsageError(concat("trainer.population excludes ", message));
  if (config.members.empty()) return;
  const Spec spec = setup.environment->spec();
  const bool same_spec = std::ranges::none_of(
      config.members, [](const MemberSetting& one) { return one.path.starts_with("env."); });
  for (int member = 0; member < config.trainer.population; ++member) {
    ConfigSources own = member_sources(sources, config, "", member);
    if (same_spec) own.spec = &spec;
    static_cast<void>(load_environment(own));
  }
}

// Each member is a training as if it were alone, which goes on with its run or begins it.
int train_population(TrainArguments& arguments, const ConfigSources& sources, const Experiment& setup,
                     const ProcessGroup& group) {
  const Config& config = setup.config;
  std::filesystem::path folder = arguments.launch.membership().restart_dir;
  if (folder.empty() && group.leads())
    folder =
        std::filesystem::absolute(make_batch_folder(config, arguments.resumes_or_begins(), "population"));
  folder = group.broadcast(folder.string());
  std::optional<run::Lock> lock;
  if (group.leads()) lock.emplace(folder, run::Lock::kLongPatience);
  heartbeat::run_folder(folder.string());
  std::vector<BatchRun> runs;
  for (int member = 0; member < config.trainer.population; ++member)
    runs.push_back({.label = concat("member ", member), .folder = folder / std::to_string(member)});
  if (group.leads()) {
    logging::info(concat("training ", runs.size(), " members in ", folder.string()));
    write_file_atomically(folder / "config.yaml", print_config(config, setup.describe(), false),
                          Durability::kSync);
    make_own_folder(folder / "weights");
    for (const BatchRun& run : runs) {
      std::error_code error;
      const std::string name = run.folder.filename().string();
      std::filesystem::create_symlink(std::filesystem::path("../" + name) / "weights",
                                      folder / "weights" / name, error);
      if (error && error != std::errc::file_exists)
        logging::warn(concat("cannot link ", (folder / "weights" / name).string(),
                             " to the weights of member ", name, ": ", error.message()));
    }
  }
  const bool quiet = std::exchange(arguments.quiet, true);
  arguments.resume = true;
  arguments.resume_from = "auto";
  arguments.launch.forget_restart();
  BatchView view(runs, quiet || !group.leads());
  const auto train_member = [&](int member) {
    if (received != 0) return 128 + received;
    ConfigSources own = member_sources(sources, config, folder, member);
    static std::mutex loading;  // environments are looked up, and compiled, by one thread at a time
    std::unique_lock lock(loading);
    Origin origin = find_origin(arguments, own);
    Experiment experiment = load_setup_that_fits(own, arguments.launch.membership());
    lock.unlock();
    return train_one(arguments, own, std::move(origin), std::move(experiment), group);
  };
  const std::vector<int> codes = train_members(setup, group, train_member, [&] { view.refresh(); });
  for (std::size_t k = 0; k < codes.size(); ++k)
    if (codes[k] == 1 || codes[k] == 2) view.mark_failed(k);
  view.finish();
  const int code = exit_code_of(codes);
  if (group.leads()) report_batch(runs, folder, "member", quiet);
  if (code != 0 && group.leads()) logging::info(concat("--resume ", shell_word(folder.string()), " goes on"));
  return code;
}

}  // namespace

int train(const CommandLine& line) {
  TrainArguments arguments;
  if (!arguments.parse(line)) return 0;
  LaunchArguments& launch = arguments.launch;
  if (arguments.quiet) logging::quiet();
  if (!arguments.fault.empty()) static_cast<void>(parse_fault(arguments.fault));
  ConfigSources sources = arguments.config.sources(!arguments.resume || arguments.resumes_or_begins());
  launch.add_overrides(sources.overrides);

  if (!arguments.seeds.empty()) {
    for (const Override& one : sources.overrides)
      if (one.path == "trainer.seed")
        throw UsageError("--seeds and --seed (trainer.seed) exclude each other: name all seeds with --seeds");
    sources.overrides.push_back({"trainer.seed", std::to_string(arguments.seeds.front()), "--seeds"});
    for (const WarmStart& start : parse_warm_starts(arguments.warm_start, ""))
      static_cast<void>(find_run(start.run, "", "runs"));
    if (!arguments.print_only) {
      const Experiment first = load_environment(sources);
      check_population(arguments, sources, first);
      return train_seeds(arguments, first);
    }
    arguments.resume = false;  // the configuration is the same
  }
  Origin origin = find_origin(arguments, sources);
  const bool goes_on = !origin.run.empty();
  if (arguments.autoscale.asked() && goes_on) {
    if (launch.membership().restart_dir.empty()) arguments.autoscale.repeat(origin.run, launch, sources);
  } else if (arguments.autoscale.asked()) {
    check_population(arguments, sources, load_environment(sources));
    try {
      arguments.autoscale.choose(launch, sources, arguments.quiet);
    } catch (const scaling::Interrupted& interrupted) {
      logging::info("the search was interrupted; nothing was trained");
      return 128 + interrupted.signal();
    }
  }
  if (arguments.print_only || launch.launches()) {
    const Experiment setup = load_environment(sources);
    check_population(arguments, sources, setup);
    origin.lock.reset();  // rank 0 takes it
    // Workers find the rest of what cannot be trained: it takes threads, and the launcher has one, which
    // hears signals.
    if (!arguments.print_only) {
      require_shares(setup.config, *setup.environment, setup.config.trainer.device != kDeviceCpu,
                     launch.world_size());
      return supervise(launch.options(setup.config.trainer.device), own_command());
    }
    require_trainable(setup.config, *setup.environment, will_use_gpu(setup.config), launch.world_size());
    print(print_config(setup.config, setup.describe()));
    return 0;
  }
  Experiment setup = load_setup_that_fits(sources, launch.membership());
  check_population(arguments, sources, setup);
  ProcessGroup group = launch.join(setup.device);
  std::optional<SilenceWatch> watch;
  if (launch.membership().alone()) watch.emplace(launch.step_seconds());
  if (setup.config.trainer.population > 0) return train_population(arguments, sources, setup, group);
  return train_one(arguments, sources, std::move(origin), std::move(setup), std::move(group));
}

}  // namespace wd::cli
