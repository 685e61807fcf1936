// name.h: what a run, an environment, a policy or a checkpoint may be called.
#pragma once

#include <string_view>

namespace wd {

// 1 to 100 of A-Z a-z 0-9 . _ - and neither "." nor "..": a name is a folder's name, never a way out of one.
bool is_name(std::string_view text);

// Throws UsageError when `name` is no name; `what` says whose it is ("environment", "policy").
void check_name(std::string_view what, std::string_view name);

}  // namespace wd
