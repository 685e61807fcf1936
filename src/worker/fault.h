// fault.h: harm done on purpose, for tests: --fault
// rank=R,iter=I,kind=throw|kill|segv|hang|exit:K|oom|drift|nan:TENSOR|slow:MS.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace wd {

struct Fault {
  std::int64_t iteration = 0;  // counted from 1; 0: no fault
  std::string kind;
  std::string argument;  // K, TENSOR, MS
  int rank = 0;          // that suffers it
  int times = 1;         // it strikes in the first `times` starts of a job that is started again

  // The tensor to poison in this iteration, "drift" for a bit of a weight; empty where there is none.
  std::string tensor_in(std::int64_t iteration) const {
    if (iteration != this->iteration) return "";
    return kind == "nan" ? argument : kind == "drift" ? kind : "";
  }
  // Strikes at the beginning of this iteration, where it is due.
  void inject(std::int64_t iteration) const;
  // The slow kind, from its iteration on: what a rollout of `steps` steps waits at each, MS in all; else 0.
  std::chrono::microseconds delay(std::int64_t iteration, std::int64_t steps) const;
};

// Throws UsageError saying what is expected.
Fault parse_fault(const std::string& text);

}  // namespace wd
