// lockstep.h: the members of a population, one thread each, that take turns and launch together.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "src/device/graph.h"
#include "wd/detail/together.h"

namespace wd {

// One thread runs at a time: that of a member, until the member launches something on the GPU, communicates,
// meets the others or ends. Then the next member's turn comes. Once none can go on, first all launches are
// enqueued, those that are alike as one; else all members communicate, in the order of their numbers, which
// is the same on all ranks; else all have met. So the same program runs for each member as alone, and the
// device has about the launches of one.
class Lockstep final : public Together {
 public:
  explicit Lockstep(int members);
  ~Lockstep();
  Lockstep(const Lockstep&) = delete;
  Lockstep& operator=(const Lockstep&) = delete;

  // Calls work(k) for each member k, which must not throw, and returns when all have returned.
  void run(const std::function<void(int member)>& work);

  // That of this thread, or null.
  static Lockstep* current() { return static_cast<Lockstep*>(together); }

  // Those that have not ended. The first of them leads.
  const std::vector<int>& active() const;
  bool leads() const;

  // Waits until all active members are here. Returns whether all brought the same.
  bool meet(const std::vector<int>& brought = {});
  // Call it before an operation in which other ranks take part.
  void communicate();
  void launch(const MemberLaunch& one) override;
  // Zeros. Those of all members have the same distance from each other, if all ask for alike ones at the same
  // time, so that products of them are one batch.
  at::Tensor allocate(at::IntArrayRef sizes, const at::TensorOptions& options);

  // What the member's next graph, or group of branches, has in common with those of the other members that
  // are as many behind their first; null for the first member that asks.
  std::shared_ptr<void>& next_common(int kind);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A view [n, ...] of n tensors of the same shape and strides that are equally far apart in one storage;
// undefined if they are not, or if there is only one.
at::Tensor batch_of(const std::vector<at::Tensor>& tensors);

// tensor.zero_(), with those of the other members.
void zero_together(const at::Tensor& tensor);

// Zeros on a device; in a population, as Lockstep::allocate().
at::Tensor zeros_together(at::IntArrayRef sizes, const at::TensorOptions& options);

}  // namespace wd
