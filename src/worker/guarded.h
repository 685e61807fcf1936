// guarded.h: runs a program's body, and reports its exceptions to users and to the launcher.
#pragma once

#include <functional>

namespace wd {

// Runs body() and returns its exit code; returns 2 for a UsageError and 1 for any other exception, and writes
// the message to the log.
int guarded(const std::function<int()>& body);

// Reports the exception that is being handled to the launcher, before anything is torn down.
void report_current_exception();

}  // namespace wd
