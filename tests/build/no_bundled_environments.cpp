// no_bundled_environments.cpp: stands in for the library's environments in a program that brings its own.
#include "wd/environment.h"

namespace wd::detail {

std::vector<EnvironmentRow> bundled_environments();
std::vector<EnvironmentRow> bundled_environments() { return {}; }

}  // namespace wd::detail
