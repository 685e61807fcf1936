// signals.h: signals to the launcher, which are read one after the other and do not interrupt it.
#pragma once

#include <csignal>
#include <vector>

#include "src/base/descriptor.h"

namespace wd::launcher {

// While this object exists, INT, TERM and HUP are queued, and the end of a child makes descriptor() readable.
// Other threads of the process take none of them (src/base/thread.h).
class Signals {
 public:
  Signals();  // throws std::runtime_error
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Returns the signals INT, TERM and HUP that arrived since the last call. A signal that was ignored when
  // this process began (nohup, a shell's background job) stays ignored.
  std::vector<int> take();

  // Waits until a signal arrives or the time is over.
  void wait(int milliseconds) const;

  int first() const { return first_; }  // first signal that arrived; 0: none
  int descriptor() const { return descriptor_.get(); }
  const sigset_t& mask_before() const { return mask_before_; }

 private:
  sigset_t mask_before_{};
  struct sigaction child_before_{};
  Descriptor descriptor_;
  int first_ = 0;
};

}  // namespace wd::launcher
