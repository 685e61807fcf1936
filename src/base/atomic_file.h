// atomic_file.h: writes files so that readers see either the old file or the complete new one, never a part.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

namespace wd {

enum class Durability {
  kReplace,  // readers, and a process after being killed, see the old or the new file
  kSync,     // also holds after a power failure: file and folder are fsynced before this returns
};

// Replaces `path` by the concatenated parts: writes a temporary file ".NAME.tmp" in the same folder, then
// renames it. A link, pipe or device at either name is replaced, never followed or opened, so this is the
// way to write a path that the user did not name, such as those in a run's folder. Only one process may write
// a path at a time. Throws std::runtime_error naming path and cause; the old file is then unchanged.
void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> parts, Durability durability);
void write_file_atomically(const std::filesystem::path& path, std::string_view text, Durability durability);

// Writes a file that the user named. A new or regular file is replaced as above, with kReplace. If the path
// is a device, a named pipe or a link, the text is written into it or its target, and the path keeps its
// type. Throws std::runtime_error naming path and cause.
void write_named_file(const std::filesystem::path& path, std::string_view text);
// The same for text that is produced in pieces.
using Append = std::function<void(std::string_view text)>;
void write_named_file(const std::filesystem::path& path, const std::function<void(const Append&)>& produce);

}  // namespace wd
