// files.h: POSIX files whose errors are exceptions that name the file and the cause.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace wd {

// Throws std::runtime_error "PATH: cannot ACTION: CAUSE", the cause being errno.
[[noreturn]] void throw_file_error(const std::filesystem::path& path, std::string_view action);

// Owns a descriptor.
class File {
 public:
  File(std::filesystem::path path, int flags);  // flags of open(2); throws
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(std::span<const std::byte> bytes);                         // all of them, or throws
  void read_at(std::uint64_t offset, std::span<std::byte> into) const;  // all of them, or throws
  void sync();
  void truncate(std::uint64_t size);
  std::uint64_t size() const;
  bool is_regular() const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int descriptor_;
};

// All of a file, or of what reads like one; none where it cannot be read, and errno says why.
std::optional<std::string> read_whole(const std::filesystem::path& path);

// rename(2), or throws.
void rename_file(const std::filesystem::path& from, const std::filesystem::path& to);

// Brings the entries of a folder to disk ("": the working folder), or throws.
void sync_folder(const std::filesystem::path& folder);

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace wd
