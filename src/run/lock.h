// lock.h: one process a run folder.
#pragma once

#include <filesystem>

namespace wd::run {

inline constexpr const char* kLockName = ".lock";

// An flock(2) on RUN/.lock for as long as this lives, and a note in it who holds it. The kernel lets go of a
// dead holder's lock.
class Lock {
 public:
  // Throws UsageError naming the holder where there is one.
  explicit Lock(const std::filesystem::path& folder);
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  // Whether the folder's .lock is still the file that is locked: it may have been removed, or moved away with
  // its folder.
  bool stands() const;

 private:
  std::filesystem::path path_;
  int descriptor_;
};

}  // namespace wd::run
