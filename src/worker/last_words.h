// last_words.h: reports the sudden end of a process that has no launcher to report it.
#pragma once

#include <string_view>

namespace wd::launcher {

// Writes how this process ends and where it was to stderr and, if there is a run folder, to error.json in it.
// It ends by `signal` or, if that is 0, with exit code 1. The backtrace is that of worker_status(). Safe in a
// signal handler.
void write_last_words(std::string_view message, int signal);

}  // namespace wd::launcher
