// lock.cpp: the flock, and the name of its holder.
#include "src/run/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <sstream>
#include <thread>

#include "src/base/files.h"
#include "src/base/host.h"
#include "src/base/log.h"
#include "wd/error.h"

namespace wd::run {

namespace {

std::string read_line(int descriptor) {
  std::array<char, 256> text{};
  const ssize_t got = ::pread(descriptor, text.data(), text.size() - 1, 0);
  const std::string line = got > 0 ? text.data() : "";
  return line.substr(0, line.find('\n'));
}

// Tries again while the lock is held, for as long as `patience`. Returns false, with errno, if that fails.
bool lock_exclusively(int descriptor, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kPause(5);
  for (std::chrono::milliseconds waited(0);; waited += kPause) {
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK || waited >= patience) return false;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

LockView look_at_lock(const std::filesystem::path& folder) {
  LockView view;
  const Descriptor file(::open((folder / kLockName).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) {
    if (errno != ENOENT) view.state = LockState::kUnknown;
    return view;
  }
  if (::flock(file.get(), LOCK_SH | LOCK_NB) != 0)
    view.state = errno == EWOULDBLOCK ? LockState::kHeld : LockState::kUnknown;
  std::istringstream line(read_line(file.get()));  // as Lock writes it
  std::string process, on;
  if (!(line >> process >> view.process >> on >> view.host)) view.host.clear();
  return view;
}

Lock::Lock(const std::filesystem::path& folder, std::chrono::milliseconds patience)
    : path_(folder / kLockName),
      descriptor_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666)) {
  if (!descriptor_) throw_file_error(path_, "open it for writing");
  bool locked = lock_exclusively(descriptor_.get(), std::min(patience, kPatience));
  const std::string who = locked ? "" : read_line(descriptor_.get());
  const std::string used =
      concat("run folder ", folder.string(), " is in use by ", who.empty() ? "another process" : who, ": ");
  if (!locked && errno == EWOULDBLOCK && patience > kPatience) {
    logging::info(concat(used, "waiting up to ", patience.count() / 1000, " s for it to end"));
    locked = lock_exclusively(descriptor_.get(), patience);
  }
  if (!locked && errno != EWOULDBLOCK) throw_file_error(path_, "lock it");
  if (!locked) throw UsageError(used + "wait for it to end, or stop it");
  const std::string text = concat("process ", ::getpid(), " on ", host_name(), "\n");
  if (::ftruncate(descriptor_.get(), 0) != 0 || ::pwrite(descriptor_.get(), text.data(), text.size(), 0) < 0)
    throw_file_error(path_, "write");
}

bool Lock::stands() const {
  struct stat there{}, own{};
  return ::lstat(path_.c_str(), &there) == 0 && ::fstat(descriptor_.get(), &own) == 0 &&
         there.st_dev == own.st_dev && there.st_ino == own.st_ino;
}

}  // namespace wd::run
