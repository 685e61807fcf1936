// host.h: this machine: its name, and its random numbers.
#pragma once

#include <string>

namespace wd {

// As gethostname(2) has it.
std::string host_name();

// 128 random bits in hexadecimal, from getrandom(2). Throws std::runtime_error if there are none.
std::string random_token();

}  // namespace wd
