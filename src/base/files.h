// files.h: POSIX files. Errors are exceptions that name the file and the cause.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wd {

// Throws std::runtime_error "PATH: cannot ACTION: CAUSE" with the cause from errno.
[[noreturn]] void throw_file_error(const std::filesystem::path& path, std::string_view action);

// kAny: any kind of file the user may have chosen. kOwn: a file that only this program creates, so it must be
// a regular file with a single name that is not reached through a link. Anything else at that path came with
// a folder from elsewhere; it leads out of the folder, or is a pipe that has no writer.
enum class FileKind { kAny, kOwn };

// Owns a descriptor.
class File {
 public:
  // `flags` are those of open(2). Throws if the file cannot be opened. Blocks on a named pipe only if it is
  // opened as kAny without O_NONBLOCK.
  File(std::filesystem::path path, int flags, FileKind kind = FileKind::kAny);
  ~File();
  File(File&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) = delete;

  void write(std::span<const std::byte> bytes);  // writes all bytes, or throws
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  void read_at(std::uint64_t offset, std::span<std::byte> into) const;  // reads all bytes, or throws
  void start_sync();  // lets the disk begin with what sync() waits for; a hint, which never fails
  void sync();
  void truncate(std::uint64_t size);
  std::uint64_t size() const;
  bool is_regular() const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int descriptor_;
};

inline constexpr std::uint64_t kAnySize = ~std::uint64_t{0};
// [bytes] of a script or of start states that the user provides
inline constexpr std::uint64_t kMaxInput = std::uint64_t{1} << 28;
// Returns the whole content of a file or of anything that can be read like one. Returns none if it cannot be
// read; errno holds the cause, which is EFBIG if there are more than max_bytes bytes.
std::optional<std::string> read_whole(const std::filesystem::path& path, std::uint64_t max_bytes = kAnySize);
// Like read_whole(), but only for regular files, and never blocks. Sets errno to EINVAL if it is another kind
// of file.
std::optional<std::string> read_regular(const std::filesystem::path& path, std::uint64_t max_bytes);

// Creates a folder of a run, for example RUN/rollouts, if it does not exist. Throws if it is a link: that
// came with a folder from elsewhere, and would lead files out of it.
void make_own_folder(const std::filesystem::path& folder);

// Calls rename(2). Throws if it fails.
void rename_file(const std::filesystem::path& from, const std::filesystem::path& to);

// Flushes files to disk, together: they need one transaction of the file system instead of one for each.
// Throws if that fails.
void sync_files(std::vector<File>& files);

// Flushes the entries of a folder to disk ("" is the working folder). Throws if that fails.
void sync_folder(const std::filesystem::path& folder);

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace wd
