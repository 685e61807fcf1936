// run_child.h: runs another process of this program to its end.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace wd {

struct Ended {
  int exit_code = 0;     // 128 + n if signal n ended it
  std::string out, err;  // complete stdout and stderr
};

// Runs the command with these variables added to the environment. The process dies with this one. Throws
// std::runtime_error if it cannot be started.
Ended run_child(const std::vector<std::string>& command,
                const std::vector<std::pair<std::string, std::string>>& variables);

}  // namespace wd
