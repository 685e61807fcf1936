// strict.h: counts operations that a training loop must not do after warm-up: allocate, and on a GPU copy to
// or from the host, or wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "wd/device.h"

namespace wd {

// Only one may exist at a time. On the CPU it counts allocations of tensor storage by any thread; on a GPU,
// through CUPTI, it also counts calls of the CUDA runtime, by any library, that copy between host and device,
// wait for the device, allocate or free.
class StrictDevice {
 public:
  // Throws UsageError if another one exists or CUPTI cannot be used.
  explicit StrictDevice(Device device);
  ~StrictDevice();
  StrictDevice(const StrictDevice&) = delete;
  StrictDevice& operator=(const StrictDevice&) = delete;

  // Starts to count violations, until disarm().
  void arm();
  void disarm();
  // Throws std::runtime_error that names the first violation so far and says how many there were.
  void check() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Suspends counting in its scope, for communication between ranks, for reads of metrics, for pools of past
// selves between iterations, and for modules, whose autograd allocates.
class NotStrict {
 public:
  NotStrict();
  ~NotStrict();
  NotStrict(const NotStrict&) = delete;
  NotStrict& operator=(const NotStrict&) = delete;
};

namespace strict {

// Returns true if violations count now.
bool armed();
// Records a violation: "an allocation of 8 bytes".
void violation(const std::string& what);

}  // namespace strict

}  // namespace wd
