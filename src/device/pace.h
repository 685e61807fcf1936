// pace.h: keeps the host from running ahead of a GPU.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "src/device/device.h"

namespace wd {

// Bounds how far the host runs ahead of the device: when it enqueues iteration k, iteration k - 2 is done.
// The device therefore always has work, and what the host decides between iterations is at most that old.
//
// Without milestones (on the CPU) nothing is ever in flight, and nothing happens.
class Pace {
 public:
  using Milestones = std::array<std::unique_ptr<Milestone>, 2>;

  explicit Pace(Milestones milestones) : milestones_(std::move(milestones)) {}

  // Call it when all work of an iteration is enqueued. Waits until the iteration before is done, and then
  // reports progress (heartbeat). `among_others`: other ranks take part, so that this wait may be one for
  // them. The wait is permitted under StrictDevice.
  void iteration_enqueued(bool among_others);

  // The number of iterations that are enqueued and were not done at the last wait: 0 or 1.
  std::int64_t in_flight() const { return milestones_[0] && enqueued_ > 0 ? 1 : 0; }

 private:
  Milestones milestones_;  // those of iterations with an even number and with an odd number
  std::uint64_t enqueued_ = 0;
};

}  // namespace wd
