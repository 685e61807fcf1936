// bell.h: two processes wake each other through a word of memory that they share.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>

namespace wd::outside {

using Word = std::atomic<std::int32_t>;
static_assert(sizeof(Word) == 4 && Word::is_always_lock_free);

// What was written before is visible to whoever sees the new value.
inline void ring(Word& word, std::int32_t value) {
  word.store(value, std::memory_order_release);
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

// Waits until the word is no longer `old`: `microseconds` without a system call, and then asleep. Returns
// false after that many milliseconds, or if a signal came.
inline bool wait(const Word& word, std::int32_t old, int microseconds, int milliseconds) {
  const auto changed = [&] { return word.load(std::memory_order_acquire) != old; };
  if (changed()) return true;
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
  while (microseconds > 0 && std::chrono::steady_clock::now() < end) {
    for (int k = 0; k < 64; ++k) {
      if (changed()) return true;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  }
  const timespec limit{milliseconds / 1000, (milliseconds % 1000) * 1'000'000L};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, old, &limit, nullptr, 0);
  return changed();
}

}  // namespace wd::outside
