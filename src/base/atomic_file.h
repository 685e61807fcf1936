// atomic_file.h: files that are either the old one or the whole new one, never a part.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace wd {

enum class Durability {
  kReplace,  // readers and a killed process see old or new
  kSync,     // so does a machine that loses power: file and folder are fsynced before this returns
};

// Replaces `path` by the concatenated parts: a temporary file ".NAME.tmp" in the same folder, then a rename.
// One process writes a path at a time. Throws std::runtime_error naming path and cause; the old file is then
// as it was.
void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> parts, Durability durability);
void write_file_atomically(const std::filesystem::path& path, std::string_view text, Durability durability);

// Writes a file that the user named. A new or regular file is replaced as above, with kReplace; into a
// device, a named pipe or what a link leads to the text is written, and it stays what it is. Throws
// std::runtime_error naming path and cause.
void write_named_file(const std::filesystem::path& path, std::string_view text);

}  // namespace wd
