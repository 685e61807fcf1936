// atomic_file.cpp: temporary file, fsync, rename, fsync of the folder.
#include "src/base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include "src/base/files.h"

namespace wd {

namespace fs = std::filesystem;

namespace {

// Removes the file unless it was renamed.
class Stage {
 public:
  // The name is the same each time, so the next write replaces what a killed process left behind, or what
  // came with a folder from elsewhere: a link, a pipe, another name of a file.
  explicit Stage(const fs::path& path)
      : place_(path),
        path_(path.parent_path() / ("." + path.filename().string() + ".tmp")),
        file_((::unlink(path_.c_str()), path_), O_WRONLY | O_CREAT | O_EXCL) {}
  ~Stage() {
    if (!renamed_) ::unlink(path_.c_str());
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  File& file() { return file_; }
  void commit(Durability durability) {
    if (durability == Durability::kSync) file_.sync();
    rename_file(path_, place_);
    renamed_ = true;
    if (durability == Durability::kSync) sync_folder(place_.parent_path());
  }

 private:
  fs::path place_, path_;
  File file_;
  bool renamed_ = false;
};

}  // namespace

void write_file_atomically(const fs::path& path, std::span<const std::span<const std::byte>> parts,
                           Durability durability) {
  Stage stage(path);
  for (const auto part : parts) stage.file().write(part);
  stage.commit(durability);
}

void write_file_atomically(const fs::path& path, std::string_view text, Durability durability) {
  const std::span<const std::byte> part = bytes_of(text);
  write_file_atomically(path, std::span(&part, 1), durability);
}

void write_named_file(const fs::path& path, const std::function<void(const Append&)>& produce) {
  std::error_code unknown;
  const fs::file_type type = fs::symlink_status(path, unknown).type();
  if (type == fs::file_type::not_found || type == fs::file_type::regular) {
    Stage stage(path);
    produce([&](std::string_view text) { stage.file().write(bytes_of(text)); });
    return stage.commit(Durability::kReplace);
  }
  File file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY);
  produce([&](std::string_view text) { file.write(bytes_of(text)); });
}

void write_named_file(const fs::path& path, std::string_view text) {
  write_named_file(path, [&](const Append& append) { append(text); });
}

}  // namespace wd
