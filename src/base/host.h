// host.h: name, processor and random numbers of this machine.
#pragma once

#include <string>

namespace wd {

// The name that gethostname(2) returns.
std::string host_name();

// "AMD EPYC 7B13"; "CPU" if Linux does not report it.
std::string cpu_model();

// Returns 128 random bits in hexadecimal from getrandom(2). Throws std::runtime_error if there are none.
std::string random_token();

}  // namespace wd
