// train.cpp: iterations until the configuration's end is reached, with the run's files on the way.
#include <chrono>

#include "src/device.h"
#include "wd/log.h"
#include "wd/trainer.h"
#include "wd/weights.h"

namespace wd {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Progress progress_of(const Trainer& trainer, const std::vector<PolicySettings>& policies, Clock::time_point start, Device device) {
  Progress progress;
  progress.counts = trainer.counts();
  progress.wall_s = seconds_since(start);
  for (std::size_t p = 0; p < policies.size(); ++p) progress.mean_return.emplace_back(policies[p].name, trainer.mean_return(p));
  if (device.is_cuda()) progress.device_bytes = static_cast<std::uint64_t>(peak_memory(device));
  return progress;
}

// False where a file could not be written; the run's log says why.
bool save_weights(Trainer& trainer, Run& run) {
  bool saved = true;
  for (const Policy& policy : trainer.policies()) saved = run.save_weights(policy.name(), HostWeights(policy).views()) && saved;
  return saved;
}

// Why training ends before the next iteration; empty while it goes on. `cut`: why the last one may have been cut short.
std::string reason_to_stop(const Config& config, const Trainer& trainer, const std::string& cut) {
  if (trainer.return_reached()) return "stop_return";
  if (trainer.counts().env_steps >= config.trainer.total_steps) return "total_steps";
  return cut;
}

// The loop proper.
std::string train_to_end(const Config& config, Trainer& trainer, Run& run, const std::function<bool()>& interrupted,
                         const Clock::time_point start) {
  const double limit = config.trainer.max_seconds;
  const auto cut = [&]() -> const char* {
    if (interrupted && interrupted()) return "signal";
    return limit > 0.0 && seconds_since(start) >= limit ? "max_seconds" : "";
  };
  const Device device = trainer.replicas().device();
  const auto report = [&] {
    run.log(trainer.take_metrics());
    run.display(progress_of(trainer, config.policies, start, device));
  };
  const std::int64_t save_every = config.saving.model_params_save_freq;  // 0: at the end alone
  std::string reason;
  std::int64_t logged = 0;
  while (reason.empty()) {
    const bool complete = trainer.iterate([&] { return *cut() != '\0'; });
    const std::int64_t iteration = trainer.counts().iteration;
    reason = reason_to_stop(config, trainer, cut());
    if (complete && iteration % config.saving.metrics_log_freq == 0) {
      report();
      logged = iteration;
    }
    // A full disk must not end training: only the last weights decide about success.
    if (complete && save_every > 0 && iteration % save_every == 0) save_weights(trainer, run);
  }
  if (logged < trainer.counts().iteration) report();
  if (trainer.counts().iteration == 0) logging::warn("ended by " + reason + " before one iteration was complete: the weights are as at the start");
  if (!save_weights(trainer, run)) throw std::runtime_error("the trained weights could not be saved");
  return reason;
}

}  // namespace

std::string train(const Config& config, Trainer& trainer, Run& run, const std::function<bool()>& interrupted) {
  const Clock::time_point start = Clock::now();
  const auto progress = [&] { return progress_of(trainer, config.policies, start, trainer.replicas().device()); };
  try {
    const std::string reason = train_to_end(config, trainer, run, interrupted, start);
    run.finish(reason == "max_seconds" || reason == "signal" ? RunStatus::kStopped : RunStatus::kFinished, reason, progress());
    return reason;
  } catch (const std::exception& error) {
    run.finish(RunStatus::kFailed, error.what(), progress());
    throw;
  }
}

}  // namespace wd
