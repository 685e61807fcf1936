// pace.cpp: the one wait of an iteration.
#include "src/device/pace.h"

#include <optional>

#include "src/device/strict.h"
#include "wd/heartbeat.h"

namespace wd {

void Pace::iteration_enqueued(bool among_others) {
  if (!milestones_[0]) return;
  milestones_[++enqueued_ % 2]->record();
  if (enqueued_ == 1) return;
  const NotStrict permitted;
  std::optional<heartbeat::Collective> inside;
  if (among_others) inside.emplace();
  milestones_[(enqueued_ - 1) % 2]->wait();
  heartbeat::beat();
}

}  // namespace wd
