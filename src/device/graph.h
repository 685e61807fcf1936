// graph.h: device work that the host enqueues once and then repeats with a single call; device work in
// branches.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "wd/device.h"

namespace wd {

// On a GPU this is a CUDA graph. The first run() calls `enqueue`, so that everything it needs is allocated
// and selected; the second run() captures what `enqueue` enqueues; from then on run() replays the capture
// without calling `enqueue`. Whatever changes from run to run must be in device memory. On the CPU, or if it
// is not enabled, run() calls `enqueue` every time. Work that has several forms names its form: each has a
// graph of its own, and all share a stream and memory.
class Graph {
 public:
  Graph(Device device, bool enabled);
  ~Graph();
  Graph(Graph&&) noexcept;

  // Throws std::runtime_error if the work cannot be captured, because it waited for the device or allocated
  // memory outside torch's allocator.
  void run(const std::function<void()>& enqueue, const std::vector<int>& form = {});

  // Destroys all captures; the next run() captures again.
  void reset();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Independent pieces of work that may fill a GPU together if one alone does not. Each has its own stream,
// which is a branch of the graph within a Graph. On the CPU they run one after the other.
class Branches {
 public:
  explicit Branches(Device device);
  ~Branches();
  Branches(Branches&&) noexcept;

  // enqueue(0), ... enqueue(count - 1) are called in turn. Their work starts after what is already on the
  // current stream, and the current stream continues after all of them.
  void each(std::size_t count, const std::function<void(std::size_t)>& enqueue);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wd
