// profile.h: where time goes on the CPU: operations by name, in the phase of training that they belong to.
//
// A Scope that nobody collects costs one load and one branch.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "wd/phase.h"

namespace wd::profile {

// All calls of one operation in one phase.
struct Operation {
  Phase phase = Phase::kOther;
  std::string name;
  std::int64_t calls = 0;
  double seconds = 0.0;  // summed over the threads that worked on it, without the operations inside of it
};

// Begins to collect from all threads, from nothing.
void start();
// Ends it; the longest first.
std::vector<Operation> stop();

namespace detail {
inline std::atomic<bool> collecting{false};
}

// The phase that scopes on any thread belong to, from here to the end of the block; for outside profilers a
// range with its name, in builds with CUDA. On the thread that trains.
class PhaseScope {
 public:
  explicit PhaseScope(Phase phase);
  ~PhaseScope();
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  Phase outer_;
};

// Time from here to the end of the block; what other threads add to it through parallel_for() counts too.
// `name` is a literal.
class Scope {
 public:
  explicit Scope(const char* name) {
    if (detail::collecting.load(std::memory_order_relaxed)) begin(name);
  }
  // Another thread's work for `whole`, which outlives this; null: for none.
  explicit Scope(Scope* whole) {
    if (whole != nullptr) begin_share(*whole);
  }
  ~Scope() {
    if (open_) end();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // The innermost one of this thread; null where nothing is collected.
  static Scope* current();

 private:
  using Clock = std::chrono::steady_clock;

  void begin(const char* name);
  void begin_share(Scope& whole);
  void end();

  bool open_ = false;
  const char* name_ = nullptr;  // null in a share
  Phase phase_ = Phase::kOther;
  Scope *whole_ = nullptr, *outer_ = nullptr;
  Clock::time_point start_{};
  double inside_ = 0.0;              // [s] of scopes within this one, on this thread
  std::atomic<double> others_{0.0};  // [s] that other threads worked for this one
};

}  // namespace wd::profile
