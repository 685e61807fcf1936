// fault.h: harm done on purpose, for tests: --fault iter=I,kind=throw|kill|segv|hang|exit:K|oom|nan:TENSOR|slow:MS.
#pragma once

#include <cstdint>
#include <string>

namespace wd {

struct Fault {
  std::int64_t iteration = 0;  // counted from 1; 0: no fault
  std::string kind;
  std::string argument;  // K, TENSOR, MS

  // The tensor to poison in this iteration; empty where there is none.
  std::string tensor_in(std::int64_t iteration) const {
    return kind == "nan" && iteration == this->iteration ? argument : "";
  }
  // Strikes at the beginning of this iteration, where it is due. slow strikes in all iterations from there on.
  void strike(std::int64_t iteration) const;
};

// Throws UsageError saying what is expected.
Fault parse_fault(const std::string& text);

}  // namespace wd
