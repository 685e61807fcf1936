// atomic_file.cpp: temporary file, fsync, rename, fsync of the folder.
#include "src/base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include "src/base/files.h"

namespace wd {

namespace fs = std::filesystem;

void write_file_atomically(const fs::path& path, std::span<const std::span<const std::byte>> parts,
                           Durability durability) {
  // The name is the same each time, so the next write overwrites what a killed process left behind.
  const fs::path stage = path.parent_path() / ("." + path.filename().string() + ".tmp");
  try {
    File file(stage, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
    for (const auto part : parts) file.write(part);
    if (durability == Durability::kSync) file.sync();
    rename_file(stage, path);
  } catch (...) {
    ::unlink(stage.c_str());
    throw;
  }
  if (durability == Durability::kSync) sync_folder(path.parent_path());
}

void write_file_atomically(const fs::path& path, std::string_view text, Durability durability) {
  const std::span<const std::byte> part = bytes_of(text);
  write_file_atomically(path, std::span(&part, 1), durability);
}

void write_named_file(const fs::path& path, std::string_view text) {
  std::error_code unknown;
  const fs::file_type type = fs::symlink_status(path, unknown).type();
  if (type == fs::file_type::not_found || type == fs::file_type::regular)
    return write_file_atomically(path, text, Durability::kReplace);
  File(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY).write(bytes_of(text));
}

}  // namespace wd
