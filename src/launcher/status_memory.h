// status_memory.h: the launcher's side of status.h.
#pragma once

#include <span>

#include "src/base/descriptor.h"
#include "src/worker/status.h"

namespace wd::launcher {

// Shared memory with one slot per worker of this node.
class StatusMemory {
 public:
  explicit StatusMemory(int num_workers);  // throws std::runtime_error
  ~StatusMemory();
  StatusMemory(const StatusMemory&) = delete;
  StatusMemory& operator=(const StatusMemory&) = delete;

  std::span<const WorkerStatus> slots() const { return slots_; }
  int descriptor() const { return descriptor_.get(); }

 private:
  Descriptor descriptor_;
  std::span<WorkerStatus> slots_;
};

}  // namespace wd::launcher
