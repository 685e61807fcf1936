// host.h: name, processor and random numbers of this machine.
#pragma once

#include <string>

namespace wd {

// The name that gethostname(2) returns.
std::string host_name();

// Model of the processor: "AMD EPYC 7B13"; "unknown processor" if Linux does not say.
std::string processor_name();

// Returns 128 random bits in hexadecimal from getrandom(2). Throws std::runtime_error if there are none.
std::string random_token();

}  // namespace wd
