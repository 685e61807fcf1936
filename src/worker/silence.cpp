// silence.cpp: a thread that compares the heartbeat with its previous value.
#include "src/worker/silence.h"

#include <algorithm>
#include <chrono>

#include "src/base/log.h"
#include "src/worker/monotonic.h"
#include "src/worker/status.h"
#include "wd/error.h"
#include "wd/heartbeat.h"

namespace wd {

SilenceWatch::SilenceWatch(double limit)
    : thread_([this, limit](const std::stop_token& stop) { look(stop, limit); }) {}

void SilenceWatch::look(const std::stop_token& stop, double limit) {
  const launcher::WorkerStatus& status = launcher::worker_status();
  const std::chrono::duration<double> pause(std::min(limit / 4, 1.0));
  std::uint64_t seen = status.beats.load();
  std::int64_t since = launcher::now_ns();
  bool warned = false;
  std::unique_lock lock(mutex_);
  while (!end_.wait_for(lock, stop, pause, [] { return false; }) && !stop.stop_requested()) {
    const std::int64_t now = launcher::now_ns();
    if (const std::uint64_t beats = status.beats.load(); beats != seen) {
      seen = beats;
      since = now;
      warned = false;
    }
    // Writing a checkpoint to a slow disk beats only at its end.
    if (warned || now - since < launcher::nanoseconds(limit) ||
        status.phase.load() == static_cast<int>(heartbeat::Activity::kCheckpoint))
      continue;
    warned = true;
    logging::warn(concat("no progress for ", limit, " s in phase ", launcher::phase_name(status.phase.load()),
                         " of iteration ", status.iteration.load(),
                         ": an environment's step that never ends? `wdtrain check` names it; two signals end "
                         "this process (Ctrl-C twice); --step_seconds sets the limit"));
  }
}

}  // namespace wd
