// timeline.h: how the time of an iteration is divided among its phases, on the clock of the device that does
// the work.
#pragma once

#include <array>
#include <memory>

#include "wd/detail/phase.h"
#include "wd/device.h"

namespace wd {

// Marks divide time into pieces: the time since the last mark belongs to the phase of the next mark. On CUDA
// a mark is an event on the current stream, and only totals() and all() wait for it.
class Timeline {
 public:
  explicit Timeline(Device device);
  ~Timeline();
  Timeline(Timeline&&) noexcept;

  void mark(Phase phase);
  // Seconds by phase since the last call.
  std::array<double, kNumPhases> totals();
  // Seconds by phase since construction.
  std::array<double, kNumPhases> all();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wd
