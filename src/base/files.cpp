// files.cpp: POSIX file calls, retried if they are interrupted or transfer only a part.
#include "src/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "src/base/failpoint.h"
#include "wd/error.h"

namespace wd {
namespace {

constexpr const char* kRemedy = "; remove it, or put the original there";
constexpr mode_t kNewFileMode = 0666;  // before the umask is applied

struct stat status_of(int descriptor, const std::filesystem::path& path) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) throw_file_error(path, "look at it");
  return status;
}

int open_as(const std::filesystem::path& path, int flags, FileKind kind) {
  const int more = kind == FileKind::kOwn ? O_NOFOLLOW | O_NONBLOCK : 0;
  return ::open(path.c_str(), flags | more | O_CLOEXEC, kNewFileMode);
}

// Reads a descriptor to its end and closes it.
std::optional<std::string> read_rest(int descriptor, std::uint64_t max_bytes) {
  std::string text;
  std::array<char, 1 << 16> part{};
  ssize_t got = 0;
  do {
    got = ::read(descriptor, part.data(), part.size());
    if (got > 0) text.append(part.data(), static_cast<std::size_t>(got));
  } while (text.size() <= max_bytes && (got > 0 || (got < 0 && errno == EINTR)));
  const int cause = text.size() > max_bytes ? EFBIG : errno;
  ::close(descriptor);
  errno = cause;
  if (got < 0 || text.size() > max_bytes) return {};
  return text;
}

}  // namespace

void throw_file_error(const std::filesystem::path& path, std::string_view action) {
  const int cause = errno;
  throw std::runtime_error(
      concat(path.string(), ": cannot ", action, ": ", std::generic_category().message(cause)));
}

File::File(std::filesystem::path path, int flags, FileKind kind)
    : path_(std::move(path)), descriptor_(open_as(path_, flags, kind)) {
  const int cause = errno;
  std::error_code unknown;
  if (descriptor_ < 0 && kind == FileKind::kOwn &&
      std::filesystem::is_symlink(std::filesystem::symlink_status(path_, unknown)))
    throw std::runtime_error(concat(path_.string(), ": is a link, which is not followed", kRemedy));
  errno = cause;
  if (descriptor_ < 0 && !(kind == FileKind::kOwn && cause == ENXIO))
    throw_file_error(path_, (flags & O_ACCMODE) == O_RDONLY ? "read it" : "open it for writing");
  if (kind != FileKind::kOwn) return;
  struct stat status{};
  const bool regular = descriptor_ >= 0 && ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  if (regular && status.st_nlink <= 1) return;
  if (descriptor_ >= 0) ::close(descriptor_);
  throw std::runtime_error(
      concat(path_.string(),
             regular ? ": has another name elsewhere (a hard link)" : ": is not a regular file", kRemedy));
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void File::write(std::span<const std::byte> bytes) {
  const CallFault fault = failpoint_of_call("write");
  if (fault == CallFault::kShort) static_cast<void>(::write(descriptor_, bytes.data(), bytes.size() / 2));
  if (fault != CallFault::kNone) {
    set_errno(fault);
    throw_file_error(path_, "write");
  }
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_file_error(path_, "write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void File::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (const CallFault fault = failpoint_of_call("write"); fault != CallFault::kNone) {
    set_errno(fault);
    throw_file_error(path_, "write");
  }
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_file_error(path_, "write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

void File::read_at(std::uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t got = ::pread(descriptor_, into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_file_error(path_, "read");
    WD_CHECK(got > 0, path_.string(), ": ends ", into.size(), " bytes early");
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

void File::start_sync() { static_cast<void>(::sync_file_range(descriptor_, 0, 0, SYNC_FILE_RANGE_WRITE)); }

void File::sync() {
  const CallFault fault = failpoint_of_call("fsync");
  if (fault != CallFault::kNone) set_errno(fault);
  if (fault != CallFault::kNone || ::fsync(descriptor_) != 0) throw_file_error(path_, "bring to disk");
}

void File::truncate(std::uint64_t size) {
  if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0) throw_file_error(path_, "cut");
}

std::uint64_t File::size() const { return static_cast<std::uint64_t>(status_of(descriptor_, path_).st_size); }

std::optional<std::string> read_whole(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {};
  return read_rest(descriptor, max_bytes);
}

std::optional<std::string> read_regular(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return {};
  struct stat status{};
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) return read_rest(descriptor, max_bytes);
  ::close(descriptor);
  errno = EINVAL;
  return {};
}

void make_own_folder(const std::filesystem::path& folder) {
  std::error_code unknown;
  WD_CHECK(!std::filesystem::is_symlink(std::filesystem::symlink_status(folder, unknown)), folder.string(),
           ": is a link, which is not followed", kRemedy);
  std::filesystem::create_directories(folder);
}

void rename_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  const CallFault fault = failpoint_of_call("rename");
  if (fault != CallFault::kNone) set_errno(fault);
  if (fault != CallFault::kNone || ::rename(from.c_str(), to.c_str()) != 0)
    throw_file_error(to, "replace it");
}

void sync_files(std::vector<File>& files) {
  for (File& file : files) file.start_sync();
  for (File& file : files) file.sync();
}

void sync_folder(const std::filesystem::path& folder) {
  File(folder.empty() ? std::filesystem::path(".") : folder, O_RDONLY | O_DIRECTORY).sync();
}

bool File::is_regular() const { return S_ISREG(status_of(descriptor_, path_).st_mode); }

}  // namespace wd
