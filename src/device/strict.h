// strict.h: counts what a training loop must not do once it is warm: allocate, and on a GPU copy to or from
// the host, or wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "wd/device.h"

namespace wd {

// One at a time. On the CPU it counts allocations of tensors' storage, by any thread; on a GPU, through
// CUPTI, also calls of the CUDA runtime, by any library, that copy between host and device, wait for the
// device, allocate or free.
class StrictDevice {
 public:
  // Throws UsageError where another has the place, or CUPTI cannot be used.
  explicit StrictDevice(Device device);
  ~StrictDevice();
  StrictDevice(const StrictDevice&) = delete;
  StrictDevice& operator=(const StrictDevice&) = delete;

  // From here on violations count, until disarm().
  void arm();
  void disarm();
  // Throws std::runtime_error that names the first violation so far and says how many there were.
  void check() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// In its scope nothing counts: for what is due between ranks, and for reads of metrics.
class NotStrict {
 public:
  NotStrict();
  ~NotStrict();
  NotStrict(const NotStrict&) = delete;
  NotStrict& operator=(const NotStrict&) = delete;
};

namespace strict {

// Whether violations count now.
bool armed();
// One that counts: "an allocation of 8 bytes".
void violation(const std::string& what);

// Calls violation() from calls of the CUDA runtime until it is destroyed. Throws UsageError where it cannot.
class CudaCalls {
 public:
  CudaCalls();
  ~CudaCalls();
  CudaCalls(const CudaCalls&) = delete;
  CudaCalls& operator=(const CudaCalls&) = delete;

 private:
  void* subscriber_ = nullptr;
};

}  // namespace strict

}  // namespace wd
