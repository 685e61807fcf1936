// process_group.h: the workers of one job: the place of this one among them, and their collective operations.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "wd/detail/membership.h"
#include "wd/device.h"
#include "wd/error.h"

namespace c10d {
class Backend;
}

namespace wd {

enum class ReduceOp { kSum, kMax, kMin };

// A handle that is cheap to copy. All ranks must call every operation in the same order, from one thread at a
// time, with contiguous tensors of the same shape and type on all ranks. CUDA tensors use NCCL and only
// enqueue; CPU tensors use Gloo, and all-reduces among ranks of one machine use memory that they share. In a
// group of one, operations do nothing. Throws PeerError if another rank does not respond. The last handle
// shuts NCCL down, together with the other ranks, unless the group was aborted; CUDA graphs that contain
// operations of the group must have been destroyed by then.
class ProcessGroup {
 public:
  // A group of this process alone.
  ProcessGroup();
  // Connects to the other workers. Throws UsageError if they belong to another run or job, or if two ranks
  // would share one GPU; std::runtime_error naming those that do not arrive within `start_s` seconds;
  // PeerError if rank 0 aborts the start for such a reason. From then on `timeout_s` bounds the wait in every
  // operation.
  ProcessGroup(const Membership& membership, Device device, double timeout_s, double start_s);

  int rank() const;
  int size() const;
  bool leads() const { return rank() == 0; }  // writes files and messages
  Device device() const;

  void all_reduce(const at::Tensor& tensor, ReduceOp op = ReduceOp::kSum) const;
  // The same in the background. Do not touch the tensor until the returned function has been called, which
  // waits (on CUDA: makes the current stream wait).
  [[nodiscard]] std::function<void()> begin_all_reduce(const at::Tensor& tensor,
                                                       ReduceOp op = ReduceOp::kSum) const;
  void broadcast(const at::Tensor& tensor, int root = 0) const;
  void barrier() const;

  // Takes a host tensor [n, ...] of each rank, where n may differ. Returns all rows in rank order, on every
  // rank.
  at::Tensor all_gather_rows(const at::Tensor& rows) const;
  // Takes a host tensor [n, ...] of each rank, with the same n. Returns all rows in rank order on rank 0, an
  // undefined tensor elsewhere.
  at::Tensor gather_rows(const at::Tensor& rows) const;
  // The reverse: rank 0 passes [size() * n, ...], and `rows` [n, ...] on the host receives this rank's part.
  void scatter_rows(const at::Tensor& all, const at::Tensor& rows) const;

  // Every rank's text, in rank order.
  std::vector<std::string> all_gather(const std::string& text) const;
  // Rank 0's text.
  std::string broadcast(const std::string& text) const;

  // Adds to a counter that all ranks share, immediately and without waiting for another rank, and returns the
  // new value. `add(name, 0)` only reads.
  std::int64_t add(const std::string& counter, std::int64_t value) const;

  // Aborts the operations that NCCL has in progress, so that a rank that has failed can end. Calls
  // `drop_graphs` before, which must destroy every CUDA graph that contains operations of the group: NCCL
  // waits until they are gone, for ever. Both run on a thread of their own. Returns false if they are not
  // done after `seconds`; then only _exit() ends the process, because destructors would wait too. Afterwards
  // the group can only be destroyed. Not collective. Without NCCL it does nothing.
  bool abort(const std::function<void()>& drop_graphs, double seconds) const;

  // Seconds that this process has spent in operations since the last call: waiting for the slowest rank, and
  // transfer. Excludes CUDA operations, which are only enqueued.
  double take_seconds() const;

 private:
  friend ProcessGroup group_around(const c10::intrusive_ptr<c10d::Backend>& accelerator);  // for tests
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace wd
