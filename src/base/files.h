// files.h: POSIX files whose errors are exceptions that name the file and the cause.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace wd {

// Throws std::runtime_error "PATH: cannot ACTION: CAUSE", the cause being errno.
[[noreturn]] void throw_file_error(const std::filesystem::path& path, std::string_view action);

// A file that may be what the user made of it, or one that only this program makes: regular, under one name,
// not reached through a link. What else stands in its place came with somebody's folder and leads elsewhere,
// or is a pipe that nobody fills.
enum class FileKind { kAny, kOwn };

// Owns a descriptor.
class File {
 public:
  // flags of open(2). Throws. A named pipe is waited for only where kAny is opened without O_NONBLOCK.
  File(std::filesystem::path path, int flags, FileKind kind = FileKind::kAny);
  ~File();
  File(File&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) = delete;

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

// All of a file, or of what reads like one; none where it cannot be read, and errno says why: EFBIG where it
// has more bytes.
inline constexpr std::uint64_t kAnySize = ~std::uint64_t{0};
inline constexpr std::uint64_t kMaxInput = std::uint64_t{1}
                                           << 28;  // of a script or of start states that a user gives [bytes]
std::optional<std::string> read_whole(const std::filesystem::path& path, std::uint64_t max_bytes = kAnySize);
// The same of a regular file alone, which is not waited for; errno is EINVAL where it is something else.
std::optional<std::string> read_regular(const std::filesystem::path& path, std::uint64_t max_bytes);

// rename(2), or throws.
void rename_file(const std::filesystem::path& from, const std::filesystem::path& to);

// Brings the entries of a folder to disk ("": the working folder), or throws.
void sync_folder(const std::filesystem::path& folder);

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace wd
