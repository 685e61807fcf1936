// graph.h: work for the device that is enqueued by the host once, and from then on done again at one call;
// work in branches.
#pragma once

#include <functional>
#include <memory>

#include "wd/device.h"

namespace wd {

// On a GPU a CUDA graph: run() calls `enqueue` the first time, so that all is allocated and chosen that it
// needs; the second time it captures what `enqueue` enqueues; from then on it replays that, and `enqueue` is
// not called. What changes from run to run must lie in device memory. On the CPU, or where it is not enabled,
// run() calls `enqueue` every time.
class Graph {
 public:
  Graph(Device device, bool enabled);
  ~Graph();
  Graph(Graph&&) noexcept;

  // Throws std::runtime_error saying so where the work cannot be captured: it waited for the device, or
  // allocated from outside.
  void run(const std::function<void()>& enqueue);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Pieces of work that do not touch one another, and may fill a GPU together where one alone does not: each on
// a stream of its own, within a Graph a branch of it. On the CPU, one after the other.
class Branches {
 public:
  explicit Branches(Device device);
  ~Branches();
  Branches(Branches&&) noexcept;

  // enqueue(0), ... enqueue(count - 1) follow what the current stream has, and it goes on after all of them.
  // They are called in turn.
  void each(std::size_t count, const std::function<void(std::size_t)>& enqueue);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wd
