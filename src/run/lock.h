// lock.h: allows one process per run folder.
#pragma once

#include <filesystem>

namespace wd::run {

inline constexpr const char* kLockName = ".lock";

// Holds an flock(2) on RUN/.lock for as long as it lives, and writes into that file who holds it. The kernel
// releases the lock of a dead holder.
class Lock {
 public:
  // Throws UsageError that names the holder if there is one.
  explicit Lock(const std::filesystem::path& folder);
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  // Returns true if the folder's .lock is still the file that is locked: it may have been removed, or moved
  // away with its folder.
  bool stands() const;

 private:
  std::filesystem::path path_;
  int descriptor_;
};

// Returns true if a process holds the folder's lock. It takes the lock for an instant, so a Lock that is
// requested at that moment tries again.
bool is_held(const std::filesystem::path& folder);

}  // namespace wd::run
