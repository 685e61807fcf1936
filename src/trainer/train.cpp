// train.cpp: runs iterations until the configured end is reached, and writes the run's files meanwhile.
#include "src/trainer/train.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "src/base/log.h"
#include "src/base/name.h"
#include "src/base/stopwatch.h"
#include "src/device/device.h"
#include "src/device/strict.h"
#include "src/metrics/spikes.h"
#include "src/recorded/digest.h"
#include "src/report/plain_error.h"
#include "src/trainer/injected_faults.h"
#include "src/trainer/profiler.h"
#include "src/trainer/weights_metadata.h"
#include "src/worker/guarded.h"
#include "wd/heartbeat.h"
#include "wd/trainer.h"
#include "wd/weights.h"

namespace wd {

namespace {

std::string kibibytes(std::uint64_t bytes) { return concat((bytes + 1023) / 1024, " KiB"); }

// One call of train().
class Session {
 public:
  Session(const TrainOptions& options, Trainer& trainer, Run* run, Checkpoints* checkpoints)
      : options_(options),
        config_(options.config),
        trainer_(trainer),
        run_(run),
        checkpoints_(checkpoints),
        profiler_(trainer.group().leads() ? options.profile : 0) {
    if (checkpoints != nullptr) recordings_ = recording_digests(config_);
  }

  TrainEnd run_until_stopped();
  void fail(const std::exception& error);
  Progress progress() const;

 private:
  bool out_of_time() const {
    return config_.trainer.max_seconds > 0.0 && watch_.seconds() >= config_.trainer.max_seconds;
  }
  TrainEnd reason_to_stop();
  void look_at_goal(TrainEnd& end);
  void warn_of_spikes(MetricsRow& row);
  void report();
  void evaluate();
  void record();
  bool judged_good();
  TensorMetadata metadata_of(std::size_t policy) const;
  bool save_weights();
  bool save_checkpoint();
  bool save_checkpoint(Snapshot snapshot);
  double return_in_fresh_episodes();
  bool write_memory(Snapshot& snapshot);
  void begin();
  void end();
  void warn_if_graphs_disabled() const;
  void show_evidence() const;

  // Iterations of each kind in which everything is allocated and graphs are captured.
  static constexpr std::int64_t kWarmUp = 2;

  void tell(std::optional<ProfileReport> report);

  const TrainOptions& options_;
  const Config& config_;
  Trainer& trainer_;
  Run* run_;                  // rank 0's; null on other ranks
  Checkpoints* checkpoints_;  // the same
  std::map<std::string, std::string> recordings_;
  std::optional<SpikeWatch> spikes_;
  Profiler profiler_;
  Stopwatch watch_;
  std::int64_t reported_ = 0;  // iteration of the last report
  at::Tensor stop_flags_ = at::zeros({3}, at::kLong);
  Stopwatch saved_;                  // since the newest checkpoint was begun
  bool save_by_time_ = false;        // the same on all ranks: decided by rank 0's clock
  double checkpoint_seconds_ = 0.0;  // time that training waited for checkpoints since the last report
  double evaluation_seconds_ = 0.0;  // the same for evaluations and recordings
  Evaluation evaluation_{{}, std::nan("")};  // rank 0's: the newest
  std::int64_t evaluated_at_ = -1;           // the iteration of that
  bool evaluated_ = false;                   // since the last report
  bool last_ = false;                        // whether training goes no further
};

Progress Session::progress() const {
  Progress progress;
  progress.counts = trainer_.counts();
  progress.wall_s = trainer_.wall_s();
  progress.last = last_;
  for (std::size_t p = 0; p < config_.policies.size(); ++p) {
    progress.mean_return.emplace_back(config_.policies[p].name, trainer_.mean_return(p));
  }
  const Device device = trainer_.replicas().device();
  progress.peak_bytes = static_cast<std::uint64_t>(peak_memory(device));
  if (device.is_cuda()) progress.device_bytes = progress.peak_bytes;
  return progress;
}

// The reason is empty while training continues. The ranks decide together: if one is told to stop, all stop.
TrainEnd Session::reason_to_stop() {
  const double every = config_.saving.checkpoint_seconds;
  auto* const flags = stop_flags_.mutable_data_ptr<std::int64_t>();
  flags[0] = options_.interrupted ? options_.interrupted() : 0;
  flags[1] = out_of_time() ? 1 : 0;
  flags[2] = checkpoints_ != nullptr && every > 0.0 && saved_.seconds() >= every ? 1 : 0;
  trainer_.group().all_reduce(stop_flags_, ReduceOp::kMax);
  save_by_time_ = flags[2] != 0;
  if (const std::string done = finished(config_, trainer_); !done.empty()) return {done};
  if (flags[0] != 0) return {"signal", static_cast<int>(flags[0])};
  return {flags[1] != 0 ? "max_seconds" : ""};
}

// Returns are read here where something else reads them soon. If they have reached stop_return, the result is
// what earned them, without the update that followed. All ranks.
void Session::look_at_goal(TrainEnd& end) {
  trainer_.read_returns();
  if (!trainer_.return_reached()) return;
  trainer_.take_back_update();
  end = {"stop_return"};
}

void Session::warn_of_spikes(MetricsRow& row) {
  if (!spikes_) spikes_.emplace(run_->metrics_file());
  std::string text;
  for (const Spike& spike : spikes_->add_scores(row)) {
    text += concat(text.empty() ? "" : ", ", spike.metric, " = ", spike.value, " (", std::lround(spike.z),
                   " standard deviations above its recent mean of ", spike.mean, ")");
  }
  if (text.empty()) return;
  logging::warn(concat("iteration ", row.counts().iteration, ": ", text,
                       ": if returns fall, lower the learning rate or max_grad_norm"));
}

void Session::report() {
  MetricsRow row = trainer_.take_metrics();
  row.add("time/checkpoint_s", checkpoint_seconds_);
  row.add("time/evaluation_s", evaluation_seconds_);
  if (run_ != nullptr) {
    warn_of_spikes(row);
    if (std::exchange(evaluated_, false))
      for (const auto& [name, value] : evaluation_.values) row.add(name, value);
    run_->log(row);
    run_->display(progress());
  }
  reported_ = trainer_.counts().iteration;
  checkpoint_seconds_ = evaluation_seconds_ = 0.0;
}

// The other ranks go on and wait for rank 0 in the next rollout or update.
void Session::evaluate() {
  trainer_.check();
  if (run_ == nullptr) return;
  const Stopwatch watch;
  evaluation_ = options_.evaluate();
  evaluated_at_ = trainer_.counts().iteration;
  evaluation_seconds_ += watch.seconds();
  evaluated_ = true;
}

void Session::record() {
  const Stopwatch watch;
  options_.record(trainer_.counts().iteration);
  evaluation_seconds_ += watch.seconds();
}

// Whether the evaluation reached stop_return. All ranks.
bool Session::judged_good() {
  const TrainerSettings& trainer = config_.trainer;
  if (trainer.stop_on != kStopOnEval || !trainer.stop_return) return false;
  const at::Tensor good = at::zeros({1}, at::kLong);
  if (run_ != nullptr) good.fill_(evaluation_.judged_return >= *trainer.stop_return ? 1 : 0);
  trainer_.group().all_reduce(good, ReduceOp::kMax);
  return good.item<std::int64_t>() != 0;
}

TensorMetadata Session::metadata_of(std::size_t policy) const {
  return weights_metadata(config_, trainer_.replicas().spec(), config_.policies[policy], trainer_.counts());
}

// Returns false if a file could not be written; the run's log says why.
bool Session::save_weights() {
  trainer_.check();
  if (run_ == nullptr) return true;
  bool saved = true;
  for (std::size_t p = 0; p < config_.policies.size(); ++p) {
    const Policy& policy = trainer_.policies()[p];
    saved = run_->save_weights(policy.name(), views_of(host_copies(policy.saved())), metadata_of(p)) && saved;
    if (const std::vector<NamedTensor> average = host_copies(trainer_.average(p)); !average.empty())
      saved = run_->save_weights(average_name(policy.name()), views_of(average), metadata_of(p)) && saved;
  }
  return saved;
}

// Returns false if the previous checkpoint could not be written.
bool Session::save_checkpoint() {
  heartbeat::enter(heartbeat::Activity::kCheckpoint);
  saved_ = Stopwatch();
  Snapshot snapshot = trainer_.snapshot();
  const bool good = write_memory(snapshot) && save_checkpoint(std::move(snapshot));
  checkpoint_seconds_ += saved_.seconds();
  return good;
}

// Writes replay memories to files that the snapshot names. Returns false if that failed; the log says why.
// All ranks.
bool Session::write_memory(Snapshot& snapshot) {
  if (config_.saving.replay == kReplayNever || !trainer_.has_memory()) return true;
  const std::filesystem::path room =
      checkpoints_ != nullptr ? checkpoints_->room(snapshot.counts.iteration) : "";
  try {
    for (auto& [policy, file] : trainer_.write_memory(room)) snapshot.written[kReplayFolder + policy] = file;
    return true;
  } catch (const std::exception& error) {
    std::error_code left;  // on a full disk, the space that it took is needed
    std::filesystem::remove_all(room, left);
    logging::error(concat("checkpoint after iteration ", snapshot.counts.iteration, ": ", error.what(),
                          ": older checkpoints are unchanged"));
    return false;
  }
}

// Of the first policy, from episodes that the weights as they are played from start to end; NaN: not known.
double Session::return_in_fresh_episodes() {
  if (config_.trainer.stop_on == kStopOnEval)
    return evaluated_at_ == trainer_.counts().iteration ? evaluation_.judged_return : std::nan("");
  if (!options_.play_fresh || trainer_.counts().iteration == 0) return std::nan("");
  const Stopwatch watch;
  const Prospect candidate{trainer_.return_known() ? trainer_.mean_return(0) : std::nan(""),
                           trainer_.counts().env_steps, config_.policies[0].algorithm->traits().epochs};
  const double found =
      judge(candidate, checkpoints_->best_return(), checkpoints_->judged(), options_.play_fresh);
  evaluation_seconds_ += watch.seconds();
  return found;
}

bool Session::save_checkpoint(Snapshot snapshot) {
  if (checkpoints_ == nullptr) return true;
  CheckpointInfo info;
  info.world_size = trainer_.group().size();
  info.environment = kept_name(config_.name);
  info.seed = static_cast<std::uint64_t>(config_.trainer.seed);
  info.config_hash = config_hash(run_->config());
  info.mean_return = return_in_fresh_episodes();
  info.offsets = run_->offsets();
  info.products = snapshot.products;
  info.recordings = recordings_;
  for (std::size_t p = 0; p < config_.policies.size(); ++p)
    for (const std::string& name : {config_.policies[p].name, average_name(config_.policies[p].name)})
      snapshot.metadata[kWeightsFolder + name] = metadata_of(p);
  return checkpoints_->save(std::move(snapshot), info, run_->config(), run_->growing_files());
}

// The first checkpoint is written before the first step, so that a run can always be resumed.
void Session::begin() {
  if (trainer_.counts().iteration > 0) return;
  heartbeat::enter(heartbeat::Activity::kCheckpoint);
  Snapshot snapshot = trainer_.snapshot();
  if (run_ == nullptr) return;
  const double replay = config_.saving.replay == kReplayNever ? 0.0 : trainer_.memory_bytes();
  const std::uint64_t needed = 2 * (snapshot.bytes() + static_cast<std::uint64_t>(replay)),
                      room = std::filesystem::space(run_->folder()).available;
  if (room < needed) {
    throw UsageError(concat("run folder ", run_->folder().string(), ": two checkpoints need ",
                            kibibytes(needed), ", and the disk has ", kibibytes(room),
                            " left: make room, or name another folder with --run_dir"));
  }
  save_checkpoint(std::move(snapshot));
  if (!checkpoints_->wait())
    throw std::runtime_error("the first checkpoint could not be written: nothing was begun");
}

void Session::end() {
  last_ = true;
  if (reported_ < trainer_.counts().iteration) report();
  const bool weights = save_weights();
  // Rank 0 knows whether it is missing, and all ranks take part in a checkpoint.
  const at::Tensor missing = at::zeros({1}, at::kLong);
  if (checkpoints_ != nullptr) missing.fill_(checkpoints_->holds(trainer_.counts().iteration) ? 0 : 1);
  trainer_.group().all_reduce(missing);
  if (missing.item<std::int64_t>() != 0) save_checkpoint();
  if (checkpoints_ != nullptr && !checkpoints_->holds(trainer_.counts().iteration))
    throw std::runtime_error("the last checkpoint could not be written");
  if (!weights) throw std::runtime_error("the trained weights could not be saved");
}

void Session::tell(std::optional<ProfileReport> report) {
  if (!report || report->iterations == 0) return;
  report->env = config_.name;
  options_.profiled(profile_text(*report), profile_json(*report));
}

// If graphs were requested but cannot be used, tells the user why training is slow.
void Session::warn_if_graphs_disabled() const {
  const TrainerSettings& trainer = config_.trainer;
  if (!trainer_.replicas().device().is_cuda() || !trainer.cuda_graphs || run_ == nullptr) return;
  const auto warn = [](const std::string& why) {
    logging::warn(
        why + ": CUDA graphs are not used, and each kernel is launched by the host (trainer.cuda_graphs)");
  };
  if (trainer.straggler_preempt > 0.0 && trainer_.group().size() > 1)
    warn("trainer.straggler_preempt is looked at within every rollout");
  for (const PolicySettings& policy : config_.policies)
    if (std::ranges::count(policy.opponents, PlayerSpec{PlayerSpec::kScripted}, &ListedPlayer::player) > 0)
      warn(concat("opponents.", policy.name, " lists scripted, which the host plays"));
}

TrainEnd Session::run_until_stopped() {
  begin();
  reported_ = trainer_.counts().iteration;
  const SavingSettings& saving = config_.saving;
  StepCounts before = trainer_.counts();
  const auto due = [&](std::int64_t every) {
    const bool by_steps = config_.trainer.intervals == kIntervalsEnvSteps;
    const StepCounts& now = trainer_.counts();
    return every > 0 &&
           (by_steps ? now.env_steps / every > before.env_steps / every : now.iteration % every == 0);
  };
  // A GPU replays whole iterations, and some algorithms cannot undo one: there the time is looked at between
  // them, in reason_to_stop().
  std::function<bool()> should_stop;
  if (config_.trainer.max_seconds > 0.0 && !trainer_.replicas().device().is_cuda() &&
      trainer_.can_be_undone())
    should_stop = [this] { return out_of_time(); };
  warn_if_graphs_disabled();
  std::optional<StrictDevice> strict;
  if (options_.strict_device) strict.emplace(trainer_.replicas().device());
  TrainEnd end_of_training = reason_to_stop();
  if (!end_of_training.reason.empty()) look_at_goal(end_of_training);  // resumed at its very end
  while (end_of_training.reason.empty()) {
    const std::int64_t iteration = trainer_.counts().iteration + 1;
    heartbeat::enter(heartbeat::Activity::kRollout);  // whatever was saved or logged before is complete
    heartbeat::iteration(trainer_.iteration_under_way());
    options_.fault.inject(iteration);
    const InjectedFaults faults{
        .step_delay = options_.fault.delay(iteration, config_.trainer.rollout_steps()),
        .poison = options_.fault.tensor_in(iteration)};
    profiler_.before(trainer_);
    if (strict && trainer_.times_made() >= kWarmUp) strict->arm();
    before = trainer_.counts();
    const bool complete = iterate_with_faults(trainer_, should_stop, faults);
    end_of_training = reason_to_stop();
    if (strict) {
      strict->disarm();
      strict->check();
    }
    if (complete) tell(profiler_.after(trainer_));
    if (due(config_.trainer.canary_freq)) trainer_.check_ranks_agree();
    if (!complete) break;
    if (!end_of_training.reason.empty() || due(config_.eval.every) || due(saving.metrics_log_freq) ||
        due(saving.checkpoint_freq) || save_by_time_)
      look_at_goal(end_of_training);
    const bool last = last_ = !end_of_training.reason.empty();
    if (due(config_.eval.every) || (last && config_.eval.every > 0)) {
      tell(profiler_.end(trainer_));  // its window is of iterations alone
      evaluate();
      if (!last && judged_good()) end_of_training = {"stop_return"};
      last_ = !end_of_training.reason.empty();
      report();
    } else if (due(saving.metrics_log_freq)) {
      report();
    }
    if (run_ != nullptr && due(config_.play.every)) {
      tell(profiler_.end(trainer_));
      record();
    }
    // A full disk must not end training: only the last weights and the last checkpoint determine success.
    if (due(saving.model_params_save_freq)) save_weights();
    if (due(saving.checkpoint_freq) || save_by_time_) save_checkpoint();
  }
  tell(profiler_.end(trainer_));
  end();
  if (trainer_.counts().iteration == 0 && run_ != nullptr) {
    logging::warn("ended by " + end_of_training.reason +
                  " before one iteration was complete: the weights are as at the start");
  }
  return end_of_training;
}

void Session::show_evidence() const {
  if (!options_.show) return;
  try {
    if (const std::optional<Evidence> evidence = evidence_of(trainer_)) options_.show(*evidence);
  } catch (const std::exception& error) {
    logging::warn(concat("the states before the failure cannot be shown: ", error.what()));
  }
}

// Called while the exception is handled. Reports the failure first: the calls after it may hang.
void Session::fail(const std::exception& error) {
  report_current_exception();
  show_evidence();
  if (run_ != nullptr) {
    run_->finish(RunStatus::kFailed, plain_message(error), progress());
    logging::to_file("failed: " + plain_message(error));  // the code that catches it writes to stderr
  }
  if (trainer_.abort(options_.abort_seconds)) return;
  logging::error(plain_message(error));
  logging::error(concat("NCCL's operations could not be aborted in ", options_.abort_seconds,
                        " s: this process ends at once"));
  ::_exit(EXIT_FAILURE);
}

}  // namespace

std::string finished(const Config& config, const Trainer& trainer) {
  if (trainer.return_reached()) return "stop_return";
  return trainer.counts().env_steps >= config.trainer.total_steps ? "total_steps" : "";
}

TrainEnd train(const TrainOptions& options, Trainer& trainer, Run* run, Checkpoints* checkpoints) {
  Session session(options, trainer, run, checkpoints);
  try {
    const TrainEnd end = session.run_until_stopped();
    const bool stopped = end.reason == "max_seconds" || end.reason == "signal";
    if (end.reason == "signal") logging::to_file(concat("stopping: signal ", end.signal));
    if (run != nullptr)
      run->finish(stopped ? RunStatus::kStopped : RunStatus::kFinished, end.reason, session.progress());
    return end;
  } catch (const std::exception& error) {
    session.fail(error);
    throw;
  }
}

}  // namespace wd
