// profile.h: CPU time per operation and phase of training.
//
// If no profile is collected, a Scope costs one load and one branch.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "wd/detail/phase.h"

namespace wd::profile {

// All calls of one operation in one phase.
struct Operation {
  Phase phase = Phase::kOther;
  std::string name;
  std::int64_t calls = 0;
  double seconds = 0.0;  // summed over the threads that worked on it, excluding nested operations
};

// Clears the table and begins to collect from all threads.
void start();
// Stops collecting and returns the operations, longest first.
std::vector<Operation> stop();

namespace detail {
inline std::atomic<bool> collecting{false};
}

// Sets the phase of all scopes on any thread until the end of the block. In builds with CUDA, also marks a
// range of that name for external profilers. Use only on the thread that trains.
class PhaseScope {
 public:
  explicit PhaseScope(Phase phase);
  ~PhaseScope();
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  Phase outer_;
};

// Measures the time until the end of the block, including the time that other threads spend on it in
// parallel_for(). `name` must be a string literal.
class Scope {
 public:
  explicit Scope(const char* name) {
    if (detail::collecting.load(std::memory_order_relaxed)) begin(name);
  }
  // Work of another thread for `whole`, which must outlive this scope. Does nothing if `whole` is null.
  explicit Scope(Scope* whole) {
    if (whole != nullptr) begin_share(*whole);
  }
  ~Scope() {
    if (open_) end();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // Returns the innermost scope of this thread, or null if nothing is collected.
  static Scope* current();

 private:
  using Clock = std::chrono::steady_clock;

  void begin(const char* name);
  void begin_share(Scope& whole);
  void end();

  bool open_ = false;
  const char* name_ = nullptr;  // null if this is a share of another scope
  Phase phase_ = Phase::kOther;
  Scope *whole_ = nullptr, *outer_ = nullptr;
  Clock::time_point start_{};
  double inside_ = 0.0;              // [s] of nested scopes on this thread
  std::atomic<double> others_{0.0};  // [s] that other threads worked for this scope
};

}  // namespace wd::profile
