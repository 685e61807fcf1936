// child.h: fork and exec of one worker.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "src/launcher/descriptor.h"

namespace wd::launcher {

struct ChildPlan {
  const std::vector<std::string>& command;                     // its first word a path
  std::vector<std::pair<std::string, std::string>> variables;  // added to this process's, or in their place
  std::vector<int> inherited = {};                             // open in the worker under the same numbers
  bool keeps_stdout = false;                                   // it writes to this process's stdout
  const sigset_t& signal_mask;
};

struct Child {
  pid_t pid = 0;
  // What it writes, to be read without blocking; `out` is empty where it keeps this process's stdout.
  Descriptor out, err;
};

// Returns when the program was found and begins. The worker dies with this process, however that ends. Throws
// std::runtime_error naming program and cause.
Child start_child(const ChildPlan& plan);

}  // namespace wd::launcher
