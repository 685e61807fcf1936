// failpoint.cpp: the one armed failpoint, and how often it was passed.
#include "src/base/failpoint.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>

#include "src/base/whole_number.h"
#include "wd/error.h"

namespace wd {
namespace {

struct Armed {
  std::string name;
  int count = 0;
  CallFault fault = CallFault::kNone;  // kNone: kill the process
  std::atomic<int> passed = 0;

  Armed() {
    const char* const variable = std::getenv("WD_FAILPOINT");
    if (variable == nullptr) return;
    const std::string text = variable;
    const std::size_t first = text.find(':'), second = text.find(':', first + 1);
    const std::string number = first == std::string::npos ? "" : text.substr(first + 1, second - first - 1);
    const std::string cause = second == std::string::npos ? "" : text.substr(second + 1);
    count = whole_number<int>(number).value_or(0);
    const bool known = cause.empty() || cause == "ENOSPC" || cause == "EIO" || cause == "short";
    if (count < 1 || !known)
      throw UsageError("WD_FAILPOINT=" + text + ": expected NAME:N or NAME:N:ENOSPC|EIO|short");
    name = text.substr(0, first);
    fault = cause == "ENOSPC" ? CallFault::kNoSpace
            : cause == "EIO"  ? CallFault::kInputOutput
            : cause.empty()   ? CallFault::kNone
                              : CallFault::kShort;
  }
};

}  // namespace

CallFault failpoint_of_call(std::string_view name) {
  static Armed armed;
  if (armed.count == 0 || armed.name != name) return CallFault::kNone;
  if (armed.passed.fetch_add(1) + 1 != armed.count) return CallFault::kNone;
  if (armed.fault == CallFault::kNone) std::raise(SIGKILL);
  return armed.fault;
}

void failpoint(std::string_view name) { static_cast<void>(failpoint_of_call(name)); }

void set_errno(CallFault fault) { errno = fault == CallFault::kInputOutput ? EIO : ENOSPC; }

}  // namespace wd
