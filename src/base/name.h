// name.h: allowed names of runs, environments, policies and checkpoints.
#pragma once

#include <string>
#include <string_view>

namespace wd {

// A name has 1 to 100 of the characters A-Z a-z 0-9 . _ - and is neither "." nor "..": it can be used as a
// folder name and never leads out of a folder.
bool is_name(std::string_view text);

// The name of an environment: a name, or that of an environment in Python, KIND:REST, of up to 200 characters
// without spaces and quotes.
bool is_environment_name(std::string_view text);
// An environment's name as that of a folder: characters that a name may not have become _.
std::string folder_name(std::string_view environment);

// Throws UsageError if `name` is not a valid name. `what` says what it names ("environment", "policy").
void check_name(std::string_view what, std::string_view name);

}  // namespace wd
