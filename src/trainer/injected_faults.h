// injected_faults.h: faults that tests inject into an iteration of training (wdtrain --fault).
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace wd {

class Trainer;

struct InjectedFaults {
  std::chrono::microseconds step_delay{0};  // delay before every step of the rollout
  // "observation", "reward", "loss", "gradient", "actor.gradient" (of actors with critics) or "weight" gets a
  // NaN; "drift" changes a weight slightly.
  std::string poison = {};

  bool any() const { return step_delay.count() > 0 || !poison.empty(); }
};

// Trainer::iterate() with faults.
bool iterate_with_faults(Trainer& trainer, const std::function<bool()>& should_stop,
                         const InjectedFaults& faults);

}  // namespace wd
