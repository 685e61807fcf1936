// last_words.h: what a process without a launcher says of a sudden end: nobody else would.
#pragma once

#include <string_view>

namespace wd::launcher {

// Writes to stderr, and into error.json in the run's folder where there is one, how this process ends and
// where it stood: by `signal`, or, where that is 0, with exit code 1. The backtrace is that of
// worker_status(). Safe in a signal handler.
void write_last_words(std::string_view message, int signal);

}  // namespace wd::launcher
