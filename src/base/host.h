// host.h: this machine, for people.
#pragma once

#include <string>

namespace wd {

// As gethostname(2) has it.
std::string host_name();

}  // namespace wd
