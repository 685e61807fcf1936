// lock.h: allows one process per run folder.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "src/base/descriptor.h"

namespace wd::run {

inline constexpr const char* kLockName = ".lock";

// kUnknown: the file cannot be opened or locked, for example because the file system has no locks.
enum class LockState { kFree, kHeld, kUnknown };

struct LockView {
  LockState state = LockState::kFree;
  int process = 0;   // that holds the lock or held it last; 0 if unknown
  std::string host;  // of this process; empty if unknown
};

// Reads the lock of a run folder, which it shares for an instant: a run that starts at this moment tries
// again (Lock).
LockView look_at_lock(const std::filesystem::path& folder);

// Holds an flock(2) on RUN/.lock for as long as it lives, and writes into that file who holds it. The kernel
// releases the lock of a dead holder.
class Lock {
 public:
  // look_at_lock() shares the lock for less than this.
  static constexpr std::chrono::milliseconds kPatience{100};
  // For a holder that was asked to end, and may still be writing its last checkpoint.
  static constexpr std::chrono::seconds kLongPatience{30};
  // Throws UsageError that names the holder if there is one for longer than `patience`. Says that it waits if
  // that is longer than kPatience.
  explicit Lock(const std::filesystem::path& folder, std::chrono::milliseconds patience = kPatience);

  // Returns true if the folder's .lock is still the file that is locked: it may have been removed, or moved
  // away with its folder.
  bool stands() const;

 private:
  std::filesystem::path path_;
  Descriptor descriptor_;
};

}  // namespace wd::run
