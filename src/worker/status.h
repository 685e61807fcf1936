// status.h: the shared memory in which workers report the state described in heartbeat.h to their launcher:
// one slot per local rank.
#pragma once

#include <fcntl.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace wd::launcher {

// The file descriptor of the memory, inherited by workers.
inline constexpr const char* kStatusVariable = "WD_STATUS_FD";

// Only the launcher's memory has these seals, so a stale variable cannot cause writes to another file.
inline constexpr int kStatusSeals = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;

// Written by one worker, read by the launcher at any time, even when the worker is dead. Texts end with 0 and
// are written before the flag that announces them.
struct WorkerStatus {
  std::atomic<std::uint64_t> beats{0};
  std::atomic<std::uint64_t> collectives{0};  // entered so far
  std::atomic<int> inside_collective{0};      // nesting depth
  std::atomic<std::int64_t> iteration{0};
  std::atomic<int> phase{0};           // heartbeat::Activity
  std::atomic<int> exit_code{-1};      // exit code of a regular end
  std::atomic<int> has_run_folder{0};  // announces run_folder
  std::atomic<int> failed{0};          // 1: being written, 2: announces message, secondary, failed_at_ns
  std::atomic<int> has_backtrace{0};   // announces backtrace
  std::int64_t failed_at_ns = 0;       // CLOCK_MONOTONIC
  int secondary = 0;
  std::array<char, 64> device{};
  std::array<char, 4096> run_folder{};
  std::array<char, 8192> message{};
  std::array<char, 8192> backtrace{};  // one frame per line
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

// Copies as much of the text as fits. Safe in a signal handler.
template <std::size_t N>
void write_text(std::array<char, N>& into, std::string_view text) {
  const std::size_t size = text.size() < N ? text.size() : N - 1;
  for (std::size_t k = 0; k < size; ++k) into[k] = text[k];
  into[size] = '\0';
}

// Returns the text, even if a stray write of the worker erased its end.
template <std::size_t N>
std::string read_text(const std::array<char, N>& from) {
  std::string text(from.data(), N);
  return text.substr(0, text.find('\0'));
}

// Returns "rollout" for heartbeat::Activity::kRollout, and so on.
const char* phase_name(int phase);

// For workers (heartbeat.cpp): the worker's own slot, or nullptr if no launcher started it.
WorkerStatus* launched_status();
// The same or, without a launcher, a slot in this process's own memory.
WorkerStatus& worker_status();

// Only the first report counts. Safe in a signal handler.
void report_failure(WorkerStatus& status, std::string_view message, bool secondary);

}  // namespace wd::launcher
