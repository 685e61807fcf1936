// child_process.h: starts another process with fork and exec.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "src/base/descriptor.h"

namespace wd {

struct ChildPlan {
  const std::vector<std::string>& command;  // the first word is a path
  // Added to this process's variables, replacing those of the same name.
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<int> inherited = {};  // descriptors that stay open in the worker under the same numbers
  bool keeps_stdout = false;        // whether it writes to this process's stdout
  bool keeps_stderr = false;        // whether it writes to this process's stderr
  // Leads a process group of its own, reads nothing from the terminal, and must itself notice the end of this
  // process, whichever thread starts it.
  bool apart = false;
  int death_signal = 0;  // which an `apart` one gets when the thread that starts it ends; 0: none
  const sigset_t& signal_mask;
};

struct Child {
  pid_t pid = 0;
  // Pipes for its output, read without blocking. Empty if it keeps this process's.
  Descriptor out, err;
};

// Returns as soon as the program was found and starts to run. Unless it is `apart`, it dies with the thread
// that starts it, no matter how that ends. Throws std::runtime_error naming program and cause.
Child start_child(const ChildPlan& plan);

}  // namespace wd
