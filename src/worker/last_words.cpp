// last_words.cpp: the fields of error_report.cpp, written without heap memory.
#include "src/worker/last_words.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "src/worker/status.h"
#include "src/worker/text.h"

namespace wd::launcher {
namespace {

// The text up to its end, which a stray write may have erased.
template <std::size_t N>
std::string_view view_of(const std::array<char, N>& text) {
  return {text.data(), ::strnlen(text.data(), N)};
}

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// UTC with milliseconds: 2026-01-31T10:20:30.123Z. The date comes from the number of days as in H. Hinnant,
// "chrono-Compatible Low-Level Date Algorithms".
void add_time(Text& text) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  constexpr std::uint64_t kDay = 86400;
  const auto seconds = static_cast<std::uint64_t>(now.tv_sec);
  const std::uint64_t days = seconds / kDay + 719468, era = days / 146097, day = days % 146097;
  const std::uint64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
  const std::uint64_t of_year = day - (365 * year + year / 4 - year / 100), shifted = (5 * of_year + 2) / 153;
  const std::uint64_t month = shifted < 10 ? shifted + 3 : shifted - 9;
  text.add_number(year + era * 400 + (month <= 2 ? 1 : 0), 10, 4);
  const auto add = [&text](const char* before, std::uint64_t value, int digits) {
    text.add(before);
    text.add_number(value, 10, digits);
  };
  add("-", month, 2);
  add("-", of_year - (153 * shifted + 2) / 5 + 1, 2);
  add("T", seconds % kDay / 3600, 2);
  add(":", seconds % 3600 / 60, 2);
  add(":", seconds % 60, 2);
  add(".", static_cast<std::uint64_t>(now.tv_nsec) / 1000000, 3);
  text.add("Z");
}

void add_frames(Text& text, std::string_view frames) {
  bool first = true;
  while (!frames.empty()) {
    const std::size_t end = std::min(frames.find('\n'), frames.size());
    text.add(first ? "\n    " : ",\n    ");
    text.add_quoted(frames.substr(0, end));
    first = false;
    frames.remove_prefix(std::min(end + 1, frames.size()));
  }
}

void write_json(const WorkerStatus& slot, std::string_view message, int signal) {
  static std::array<char, 32768> memory;
  {
    Text text(memory.data(), memory.size());
    std::array<char, HOST_NAME_MAX + 1> host{};
    ::gethostname(host.data(), host.size() - 1);
    text.add("{\n  \"rank\": 0,\n  \"local_rank\": 0,\n  \"pid\": ");
    text.add_number(static_cast<std::uint64_t>(::getpid()));
    text.add(",\n  \"host\": ");
    text.add_quoted(view_of(host));
    text.add(",\n  \"device\": ");
    text.add_quoted(view_of(slot.device));
    text.add(",\n  \"iteration\": ");
    text.add_number(static_cast<std::uint64_t>(slot.iteration.load()));
    text.add(",\n  \"phase\": ");
    text.add_quoted(phase_name(slot.phase.load()));
    text.add(",\n  \"message\": ");
    text.add_quoted(message);
    text.add(",\n  \"signal\": ");
    const char* const name = signal == 0 ? nullptr : ::sigabbrev_np(signal);
    text.add(name == nullptr ? "null" : "\"SIG");
    if (name != nullptr) text.add(name);
    if (name != nullptr) text.add("\"");
    text.add(signal == 0 ? ",\n  \"exit_code\": 1" : ",\n  \"exit_code\": null");
    text.add(",\n  \"secondary\": false,\n  \"backtrace\": [");
    if (slot.has_backtrace.load() != 0) add_frames(text, view_of(slot.backtrace));
    text.add("],\n  \"time\": \"");
    add_time(text);
    text.add("\",\n  \"restart\": 0,\n  \"launcher_exit_code\": ");
    text.add_number(static_cast<std::uint64_t>(signal == 0 ? EXIT_FAILURE : 128 + signal));
    text.add("\n}\n");
  }
  std::array<char, sizeof(slot.run_folder) + 16> path{};
  {
    Text text(path.data(), path.size());
    text.add(view_of(slot.run_folder));
    text.add("/error.json");
  }
  constexpr mode_t kMode = 0666;
  const int file =
      ::open(path.data(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, kMode);
  if (file < 0) return;
  write_all(file, view_of(memory));
  ::close(file);
}

}  // namespace

void write_last_words(std::string_view message, int signal) {
  const WorkerStatus& slot = worker_status();
  static std::array<char, 512> line;
  {
    Text text(line.data(), line.size());
    text.add("\nerror: ");
    text.add(message);
    if (slot.iteration.load() > 0) {
      text.add(", in iteration ");
      text.add_number(static_cast<std::uint64_t>(slot.iteration.load()));
      text.add(", phase ");
      text.add(phase_name(slot.phase.load()));
    }
    if (signal == SIGSEGV &&
        (slot.iteration.load() == 0 || std::string_view(phase_name(slot.phase.load())) == "rollout")) {
      text.add("; `");
      text.add(::program_invocation_short_name);
      text.add(" check --env NAME` says which agent of the environment goes out of bounds, if one does");
    }
    text.add("\n");
  }
  write_all(STDERR_FILENO, view_of(line));
  if (slot.has_backtrace.load() != 0) write_all(STDERR_FILENO, view_of(slot.backtrace));
  if (slot.has_run_folder.load() != 0) write_json(slot, message, signal);
}

}  // namespace wd::launcher
