// growing_file.h: a file to which whole parts are appended, such as lines.
#pragma once

#include <fcntl.h>

#include <algorithm>

#include "src/base/files.h"

namespace wd {

class GrowingFile {
 public:
  // Creates the file. Throws std::runtime_error, also if the file exists.
  explicit GrowingFile(const std::filesystem::path& path)
      : file_(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND) {}
  // Continues a file, truncated to `size`; creates it if it does not exist. Throws std::runtime_error.
  GrowingFile(const std::filesystem::path& path, std::uint64_t size)
      : file_(path, O_WRONLY | O_CREAT | O_APPEND, FileKind::kOwn), size_(std::min(size, file_.size())) {
    file_.truncate(size_);
  }

  std::string name() const { return file_.path().filename().string(); }
  std::uint64_t size() const { return size_; }

 protected:
  // Throws std::runtime_error if writing fails; a part that is not whole is removed.
  void append_part(std::string_view part) {
    try {
      file_.write(bytes_of(part));
    } catch (const std::runtime_error&) {
      file_.truncate(size_);
      throw;
    }
    size_ += part.size();
  }

 private:
  File file_;
  std::uint64_t size_ = 0;
};

}  // namespace wd
