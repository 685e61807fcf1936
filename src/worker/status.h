// status.h: the memory through which workers and their launcher share what heartbeat.h says: one slot a local
// rank.
#pragma once

#include <fcntl.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace wd::launcher {

inline constexpr const char* kStatusVariable =
    "WD_STATUS_FD";  // descriptor of the memory, inherited by workers

// Only the launcher's memory bears these, so no other file whose number a stale variable names is written to.
inline constexpr int kStatusSeals = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;

// Written by one worker, read by the launcher at any time, also when the worker is dead. Texts end with 0 and
// are written before the flag that announces them.
struct WorkerStatus {
  std::atomic<std::uint64_t> beats{0};
  std::atomic<std::uint64_t> collectives{0};  // entered so far
  std::atomic<int> inside_collective{0};      // depth
  std::atomic<std::int64_t> iteration{0};
  std::atomic<int> phase{0};           // heartbeat::Phase
  std::atomic<int> exit_code{-1};      // of an end in good order
  std::atomic<int> has_run_folder{0};  // announces run_folder
  std::atomic<int> failed{0};          // 1: being written, 2: announces message, secondary, failed_at_ns
  std::atomic<int> has_backtrace{0};   // announces backtrace
  std::int64_t failed_at_ns = 0;       // CLOCK_MONOTONIC
  int secondary = 0;
  std::array<char, 64> device{};
  std::array<char, 4096> run_folder{};
  std::array<char, 8192> message{};
  std::array<char, 8192> backtrace{};  // one frame a line
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

// What fits of a text. Safe in a signal handler.
template <std::size_t N>
void write_text(std::array<char, N>& into, std::string_view text) {
  const std::size_t size = text.size() < N ? text.size() : N - 1;
  for (std::size_t k = 0; k < size; ++k) into[k] = text[k];
  into[size] = '\0';
}

// The text, also where a wild write of the worker took its end away.
template <std::size_t N>
std::string read_text(const std::array<char, N>& from) {
  std::string text(from.data(), N);
  return text.substr(0, text.find('\0'));
}

// "rollout", for heartbeat::Phase::kRollout.
const char* phase_name(int phase);

// Worker's side (heartbeat.cpp): its own slot, nullptr where no launcher started it.
WorkerStatus* launched_status();
// The same, or one of this process's own.
WorkerStatus& worker_status();

// The first report counts. Safe in a signal handler.
void report_failure(WorkerStatus& status, std::string_view message, bool secondary);

}  // namespace wd::launcher
