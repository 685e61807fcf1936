// last_lines.h: reads the end of a metrics.jsonl, however long it is.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace wd {

// Returns the last `count` complete lines of a regular file, in order; fewer if they take more than a
// megabyte, and none if it cannot be read.
std::vector<std::string> last_lines(const std::filesystem::path& path, std::size_t count);

}  // namespace wd
