// child.h: another process of this program, run to its end.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace wd::bench {

struct Ended {
  int exit_code = 0;     // 128 + n where signal n ended it
  std::string out, err;  // all that it wrote
};

// With these variables beside the environment's own. It dies with this process. Throws std::runtime_error
// where it cannot be started.
Ended run_child(const std::vector<std::string>& command,
                const std::vector<std::pair<std::string, std::string>>& variables);

}  // namespace wd::bench
