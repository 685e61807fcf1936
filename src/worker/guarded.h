// guarded.h: a program's body, its exceptions told to people and to the launcher.
#pragma once

#include <functional>

namespace wd {

// Runs body() and returns its exit code; 2 for a UsageError, 1 for any other exception, whose message goes to
// the log.
int guarded(const std::function<int()>& body);

// Tells the launcher of the exception that is being handled, before anything is torn down.
void report_current_exception();

}  // namespace wd
