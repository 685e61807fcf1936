// host_rows.h: the rows of one step in memory of the host, for replicas that the host steps and whose rows
// are on a GPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <deque>
#include <vector>

#include "wd/device.h"
#include "wd/environment.h"

namespace wd {

// One set of rows is enough: the actions of the next step are copied after these rows on the same queue, and
// the host waits for them.
class HostRows {
 public:
  explicit HostRows(Device device) : device_(device) {}

  // Copies actions, blocks and the choice of replicas to the host. Returns a view of rows there, in which
  // every run has rows of its own.
  StepView begin(const StateLayout& layout, const StepView& rows);
  // Copies what a step wrote there to the device. Enqueues.
  void end();

 private:
  // An array of both: rows of `width` entries for `count` agents of each replica.
  struct Pair {
    at::Tensor device, host;
  };

  Pair pair(at::Tensor& host, const void* memory, at::ScalarType type, std::int64_t replicas,
            std::int64_t agents, std::int64_t rows_apart, std::int64_t width);

  Device device_;
  std::vector<Pair> results_;    // of the step that has begun
  std::deque<at::Tensor> host_;  // [arrays of a step]; undefined: no step had it
  std::size_t next_ = 0;
  std::array<at::Tensor, kMaxSeats> host_bounds_;  // by run
};

}  // namespace wd
