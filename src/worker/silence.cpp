// silence.cpp: compares the heartbeat with its previous value.
#include "src/worker/silence.h"

#include <algorithm>

#include "src/base/log.h"
#include "src/worker/monotonic.h"
#include "src/worker/status.h"
#include "wd/error.h"
#include "wd/heartbeat.h"

namespace wd {
namespace {

class Silence {
 public:
  explicit Silence(double limit) : limit_(limit) {}

  void look() {
    const std::int64_t now = launcher::now_ns();
    if (const std::uint64_t beats = status_.beats.load(); beats != seen_) {
      seen_ = beats;
      since_ = now;
      warned_ = false;
    }
    // Writing a checkpoint to a slow disk beats only at its end.
    if (warned_ || now - since_ < launcher::nanoseconds(limit_) ||
        status_.phase.load() == static_cast<int>(heartbeat::Activity::kCheckpoint))
      return;
    warned_ = true;
    logging::warn(concat("no progress for ", limit_, " s in phase ",
                         launcher::phase_name(status_.phase.load()), " of iteration ",
                         status_.iteration.load(),
                         ": an environment's step that never ends? `wdtrain check` names it; two signals end "
                         "this process (Ctrl-C twice); --step_seconds sets the limit"));
  }

 private:
  double limit_;
  const launcher::WorkerStatus& status_ = launcher::worker_status();
  std::uint64_t seen_ = status_.beats.load();
  std::int64_t since_ = launcher::now_ns();
  bool warned_ = false;
};

}  // namespace

SilenceWatch::SilenceWatch(double limit)
    : ticker_(std::chrono::duration<double>(std::min(limit / 4, 1.0)),
              [silence = Silence(limit)]() mutable { silence.look(); }) {}

}  // namespace wd
