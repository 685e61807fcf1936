// graph.h: work for the device that is enqueued by the host once, and from then on done again at one call.
#pragma once

#include <functional>
#include <memory>

#include "wd/device.h"

namespace wd {

// On a GPU a CUDA graph: run() calls `enqueue` the first time, so that all is allocated and chosen that it needs; the second time it
// captures what `enqueue` enqueues; from then on it replays that, and `enqueue` is not called. What changes from run to run must lie
// in device memory. On the CPU, or where it is not enabled, run() calls `enqueue` every time.
class Graph {
 public:
  Graph(Device device, bool enabled);
  ~Graph();
  Graph(Graph&&) noexcept;

  // Throws std::runtime_error saying so where the work cannot be captured: it waited for the device, or allocated from outside.
  void run(const std::function<void()>& enqueue);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wd
