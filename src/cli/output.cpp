// output.cpp: stdout.
#include "src/cli/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "wd/error.h"

namespace wd::cli {

void print(std::string_view text) {
  errno = 0;
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  WD_CHECK(written || errno == EPIPE, "cannot write to stdout: ", std::strerror(errno));
}

std::string join(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : between).append(word);
  return text;
}

}  // namespace wd::cli
