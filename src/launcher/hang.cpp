// hang.cpp: a worker that makes no progress outside of a collective operation hangs; one inside waits for
// others.
#include "src/launcher/hang.h"

#include <algorithm>
#include <limits>

#include "src/worker/monotonic.h"
#include "wd/heartbeat.h"

namespace wd::launcher {
namespace {

using heartbeat::Activity;

bool is_inside(const WorkerStatus& slot) { return slot.inside_collective.load() > 0; }

}  // namespace

HangWatch::HangWatch(const LaunchOptions& options, std::span<const WorkerStatus> slots, std::int64_t now)
    : options_(options), slots_(slots), seen_(slots.size()), changed_(slots.size(), now) {}

HangWatch::Seen HangWatch::see(const WorkerStatus& slot) {
  return {slot.beats.load(), slot.collectives.load(), slot.iteration.load(), slot.phase.load()};
}

std::int64_t HangWatch::limit(std::size_t k) const {
  switch (static_cast<Activity>(seen_[k].phase)) {
    case Activity::kStarting:
      return nanoseconds(options_.start_seconds);
    case Activity::kCheckpoint:
      return nanoseconds(options_.checkpoint_seconds);
    default:
      return nanoseconds(options_.step_seconds);
  }
}

std::optional<Hang> HangWatch::look(std::int64_t now, const std::vector<bool>& alive,
                                    const std::function<bool(int)>& is_stopped) {
  // Numbers of collectives that some worker has entered, and that all live workers have entered.
  std::uint64_t furthest = 0, least = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t k = 0; k < slots_.size(); ++k) {
    if (const Seen seen = see(slots_[k]); seen != seen_[k]) {
      seen_[k] = seen;
      changed_[k] = now;
    }
    furthest = std::max(furthest, seen_[k].collectives);
    if (alive[k]) least = std::min(least, seen_[k].collectives);
  }
  Hang hang;
  for (std::size_t k = 0; k < slots_.size(); ++k) {
    if (!alive[k]) continue;
    // The worker is still inside a collective that others have already left: it is lost there.
    const bool lost = seen_[k].collectives == least && least < furthest;
    const bool silent = silence(k, now) > limit(k);
    const bool waits = is_inside(slots_[k]) && !lost && !(silent && is_stopped(static_cast<int>(k)));
    if (waits) hang.waiting.push_back(static_cast<int>(k));
    if (waits || !silent) continue;
    hang.culprits.push_back(static_cast<int>(k));
  }
  if (!hang.culprits.empty()) return hang;
  return look_at_waiting(now, alive);
}

// Handles the case that all silent workers wait in a collective. While another worker of this node makes
// progress, they rightly wait for that one. If all of them wait, they wait for a worker that has ended or for
// another node, whose launcher knows more and gets time to report.
std::optional<Hang> HangWatch::look_at_waiting(std::int64_t now, const std::vector<bool>& alive) const {
  const std::int64_t longer = options_.num_nodes > 1 ? nanoseconds(options_.grace_seconds) : 0;
  Hang hang{.all_wait = true};
  for (std::size_t k = 0; k < slots_.size(); ++k) {
    if (!alive[k]) continue;
    if (!is_inside(slots_[k]) || silence(k, now) <= 2 * limit(k) + longer) return {};
    hang.culprits.push_back(static_cast<int>(k));
  }
  if (hang.culprits.empty()) return {};
  return hang;
}

void HangWatch::ignore_gap(std::int64_t gap) {
  for (std::int64_t& time : changed_) time += gap;
}

std::int64_t HangWatch::last_progress(int local_rank) const {
  return changed_[static_cast<std::size_t>(local_rank)];
}

}  // namespace wd::launcher
