// signals.h: signals to the launcher, read one after the other instead of interrupting it.
#pragma once

#include <csignal>
#include <vector>

#include "src/launcher/descriptor.h"

namespace wd::launcher {

// While this lives, INT, TERM and HUP wait here, and the end of a child makes descriptor() readable. For a
// process of one thread.
class Signals {
 public:
  Signals();  // throws std::runtime_error
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Those of INT, TERM and HUP that arrived since the last call. One that was ignored when this process began
  // (nohup, a shell's background job) stays ignored.
  std::vector<int> take();

  // Waits until something arrives, or the time is over.
  void wait(int milliseconds) const;

  int first() const { return first_; }  // of all that arrived; 0: none
  int descriptor() const { return descriptor_.get(); }
  const sigset_t& mask_before() const { return mask_before_; }

 private:
  sigset_t mask_before_{};
  struct sigaction child_before_{};
  Descriptor descriptor_;
  int first_ = 0;
};

}  // namespace wd::launcher
