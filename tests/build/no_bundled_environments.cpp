// no_bundled_environments.cpp: replaces the library's environments in a program that has its own.
#include "wd/environment.h"

namespace wd::detail {

std::vector<EnvironmentRow> bundled_environments();
std::vector<EnvironmentRow> bundled_environments() { return {}; }

}  // namespace wd::detail
