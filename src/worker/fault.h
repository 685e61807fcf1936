// fault.h: faults injected for tests, by
// --fault rank=R,iter=I,kind=throw|kill|segv|hang|exit:K|oom|drift|nan:TENSOR|slow:MS.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace wd {

struct Fault {
  std::int64_t iteration = 0;  // counted from 1; 0: no fault
  std::string kind;
  std::string argument;  // K, TENSOR, MS
  int rank = 0;          // the rank that the fault affects
  int times = 1;         // the fault occurs in the first `times` starts of a job that is restarted

  // Returns the tensor to poison in this iteration, "drift" for a bit of a weight; empty if there is none.
  std::string tensor_in(std::int64_t iteration) const {
    if (iteration != this->iteration) return "";
    return kind == "nan" ? argument : kind == "drift" ? kind : "";
  }
  // Injects the fault at the beginning of this iteration, if it is due.
  void inject(std::int64_t iteration) const;
  // For the slow kind, from its iteration on: the delay per step of a rollout of `steps` steps, MS in all;
  // otherwise 0.
  std::chrono::microseconds delay(std::int64_t iteration, std::int64_t steps) const;
};

// Throws UsageError that says what is expected.
Fault parse_fault(const std::string& text);

}  // namespace wd
