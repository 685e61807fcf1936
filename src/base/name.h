// name.h: allowed names of runs, environments, policies and checkpoints.
#pragma once

#include <string>
#include <string_view>

namespace wd {

// A name has 1 to 100 of the characters A-Z a-z 0-9 . _ - and is neither "." nor "..": it can be used as a
// folder name and never leads out of a folder.
bool is_name(std::string_view text);

// The name of an environment: a name, or that of an environment in Python, KIND:REST, of up to 200 characters
// without spaces and quotes, or the path of a source file.
bool is_environment_name(std::string_view text);
// Whether an environment of this name is a source file that is compiled: PATH.cu.
bool is_source_file(std::string_view environment);
// The name that files keep: of a source file without its folder, since a project may move.
std::string kept_name(std::string_view environment);
// An environment's name as that of a folder: characters that a name may not have become _. Of a source file,
// the name without folder and .cu.
std::string folder_name(std::string_view environment);

// Throws UsageError if `name` is not a valid name. `what` says what it names ("environment", "policy").
void check_name(std::string_view what, std::string_view name);

}  // namespace wd
