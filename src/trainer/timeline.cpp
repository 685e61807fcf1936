// timeline.cpp: times phases by the host's clock, or by CUDA events through torch's device-independent
// interface.
#include "src/trainer/timeline.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "src/device/tensor_device.h"

namespace wd {

namespace {
using Clock = std::chrono::steady_clock;
// If metrics are rarely read, marks that the device has long passed are added up from this number on.
constexpr std::size_t kManyMarks = 4096;
}  // namespace

struct Timeline::Impl {
  Device device;
  Clock::time_point last = Clock::now();
  // Since construction, and the part of that which totals() has returned.
  std::array<double, kNumPhases> seconds{}, told{};
  std::vector<c10::Event> events;  // CUDA: one per mark, reused; the first begins the first piece
  std::vector<Phase> phases;       // of the pieces between events

  void record(std::size_t i) {
    while (events.size() <= i) events.emplace_back(gpu_type(), c10::EventFlag::BACKEND_DEFAULT);
    events[i].record(c10::impl::VirtualGuardImpl(gpu_type()).getStream(torch_device(device)));
  }
  // Adds up the first n pieces, which have ended. Their events are used again.
  void fold(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
      seconds[static_cast<std::size_t>(phases[i])] += events[i].elapsedTime(events[i + 1]) * 1e-3;
    phases.erase(phases.begin(), phases.begin() + static_cast<std::ptrdiff_t>(n));
    std::rotate(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(n), events.end());
  }
  void collect() {
    if (phases.empty()) return;
    events[phases.size()].synchronize();
    fold(phases.size());
  }
};

Timeline::Timeline(Device device) : impl_(std::make_unique<Impl>()) {
  impl_->device = device;
  if (device.is_cuda()) impl_->record(0);
}
Timeline::~Timeline() = default;
Timeline::Timeline(Timeline&&) noexcept = default;

void Timeline::mark(Phase phase) {
  Impl& self = *impl_;
  if (self.device.is_cuda()) {
    const std::size_t half = self.phases.size() / 2;
    if (half >= kManyMarks && self.events[half].query()) self.fold(half);
    self.phases.push_back(phase);
    self.record(self.phases.size());
    return;
  }
  const Clock::time_point now = Clock::now();
  self.seconds[static_cast<std::size_t>(phase)] += std::chrono::duration<double>(now - self.last).count();
  self.last = now;
}

std::array<double, kNumPhases> Timeline::totals() {
  Impl& self = *impl_;
  const std::array<double, kNumPhases> now = all();
  std::array<double, kNumPhases> since = now;
  for (std::size_t k = 0; k < since.size(); ++k) since[k] -= self.told[k];
  self.told = now;
  return since;
}

std::array<double, kNumPhases> Timeline::all() {
  Impl& self = *impl_;
  if (self.device.is_cuda()) {
    self.collect();
    self.record(0);
  }
  return self.seconds;
}

}  // namespace wd
