// process_group.h: the workers of one job: who this one is, and the operations that all of them do together.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "wd/device.h"
#include "wd/error.h"
#include "wd/membership.h"

namespace wd {

enum class ReduceOp { kSum, kMax, kMin };

// A handle that is cheap to copy. Every operation must be called by all ranks in the same order, from one
// thread at a time; tensors are contiguous, of the same shape and type everywhere. CUDA tensors travel over
// NCCL and only enqueue, CPU tensors over Gloo. A group of one does nothing. Throws PeerError where another
// rank does not answer.
class ProcessGroup {
 public:
  // This process alone.
  ProcessGroup();
  // Meets the others. Throws UsageError where they belong to another run or job, or two ranks would share one
  // GPU; std::runtime_error naming those that do not come within `start_s`; PeerError where rank 0 ends the
  // start for such a reason. From then on `timeout_s` bounds the wait in every operation.
  ProcessGroup(const Membership& membership, Device device, double timeout_s, double start_s);

  int rank() const;
  int size() const;
  bool leads() const { return rank() == 0; }  // writes files, talks to people
  Device device() const;

  void all_reduce(const at::Tensor& tensor, ReduceOp op = ReduceOp::kSum) const;
  // The same in the background: the tensor must be left alone until what comes back was called, which waits
  // (on CUDA: lets the current stream wait).
  [[nodiscard]] std::function<void()> begin_all_reduce(const at::Tensor& tensor,
                                                       ReduceOp op = ReduceOp::kSum) const;
  void broadcast(const at::Tensor& tensor, int root = 0) const;
  void barrier() const;

  // A host tensor [n, ...] of each rank, n free: all rows in the order of ranks, on every rank.
  at::Tensor all_gather_rows(const at::Tensor& rows) const;
  // A host tensor [n, ...] of each rank, n the same: all rows in the order of ranks on rank 0, undefined
  // elsewhere.
  at::Tensor gather_rows(const at::Tensor& rows) const;
  // The way back: rank 0 gives [size() * n, ...], `rows` [n, ...] on the host receives this rank's part.
  void scatter_rows(const at::Tensor& all, const at::Tensor& rows) const;

  // Every rank's text, in the order of ranks.
  std::vector<std::string> all_gather(const std::string& text) const;
  // Rank 0's text.
  std::string broadcast(const std::string& text) const;

  // Adds to a counter that all ranks share, at once and without waiting for anybody; the new value.
  // `add(name, 0)` looks.
  std::int64_t add(const std::string& counter, std::int64_t value) const;

  // Gives up what NCCL has under way, so that a rank that has failed can end; only destruction is left for
  // the group. Not collective.
  void abort() const;

  // Seconds that this process has spent in operations since the last call: the wait for the slowest, and the
  // transfer. CUDA operations, which are only enqueued, do not show here.
  double take_seconds() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace wd
