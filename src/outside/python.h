// python.h: environments that are written in Python: Gymnasium's, PettingZoo's, and those that a function of
// the user makes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "wd/outside.h"

namespace wd {

// True for gym:ID, pettingzoo:MODULE and MODULE:FUNCTION.
bool is_python_environment(std::string_view name);

// Throws UsageError if the name is none of those.
std::unique_ptr<Environment> make_python_environment(std::string_view name);

}  // namespace wd
