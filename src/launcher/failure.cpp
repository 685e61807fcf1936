// failure.cpp: describes failures in words.
#include "src/launcher/failure.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <tuple>

#include "src/base/host.h"
#include "src/base/join.h"
#include "src/base/printable.h"
#include "src/base/program_name.h"
#include "src/launcher/hang.h"
#include "src/worker/monotonic.h"
#include "wd/error.h"

namespace wd::launcher {
namespace {

// Demangles the C++ name in a frame such as "libwd.so+0x12 _ZN2wd1fEv".
std::string readable_frame(const std::string& frame) {
  const std::size_t name = frame.find(' ') + 1;
  if (name == 0) return frame;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(frame.c_str() + name, nullptr, nullptr, &status), &std::free);
  return status == 0 ? frame.substr(0, name) + plain.get() : frame;
}

std::vector<std::string> readable_backtrace(const std::string& text) {
  std::vector<std::string> frames;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) frames.push_back(readable_frame(line));
  return frames;
}

}  // namespace

const Failure& root_cause(const std::vector<Failure>& failures) {
  return *std::ranges::min_element(
      failures, {}, [](const Failure& failure) { return std::tuple(failure.secondary, failure.at_ns); });
}

Failure describe_slot(const WorkerStatus& slot, std::int64_t at_ns) {
  Failure failure;
  failure.host = host_name();
  failure.device = read_text(slot.device);
  failure.iteration = slot.iteration.load();
  failure.phase = phase_name(slot.phase.load());
  if (slot.has_backtrace.load() != 0) failure.backtrace = readable_backtrace(read_text(slot.backtrace));
  failure.at_ns = at_ns;
  failure.time = utc(at_ns);
  return failure;
}

std::string signal_name(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return name == nullptr ? concat("signal ", signal) : concat("SIG", name);
}

std::string list_ranks(std::vector<int> ranks) {
  std::ranges::sort(ranks);
  return (ranks.size() == 1 ? "rank " : "ranks ") + join(ranks);
}

std::string describe(const Failure& failure) {
  const std::string host = failure.host == host_name() ? "" : " on " + failure.host;
  const std::string when = failure.iteration > 0 ? concat("in iteration ", failure.iteration, ", ") : "in ";
  const std::string signal =
      failure.signal.empty() || failure.message.find(failure.signal) != std::string::npos
          ? ""
          : " (" + failure.signal + ")";
  const std::string advice =
      failure.signal == "SIGSEGV" && failure.phase == "rollout"
          ? concat("; `", program_name(),
                   " check --env NAME` says which agent of the environment goes out of bounds, if one does")
          : "";
  return concat("rank ", failure.rank, " (process ", failure.pid, host, ") failed ", when, "phase ",
                failure.phase, ": ", failure.message, signal, advice);
}

std::string describe_rest(const std::vector<Failure>& failures, const Failure& root,
                          const std::filesystem::path& run_folder) {
  std::string text;
  std::vector<int> same, consequences;
  for (const Failure& failure : failures) {
    if (failure.rank == root.rank) continue;
    if (failure.secondary) {
      consequences.push_back(failure.rank);
    } else if (failure.message == root.message) {
      same.push_back(failure.rank);
    } else {
      text += concat("\n  afterwards rank ", failure.rank, ": ", first_line(failure.message));
    }
  }
  if (!same.empty()) text += "\n  the same: " + list_ranks(same);
  if (!consequences.empty()) text += "\n  as a consequence: " + list_ranks(consequences);
  if (!run_folder.empty()) {
    text += concat("\n  log: ", (run_folder / concat("rank_", root.rank, ".log")).string());
    const std::filesystem::path details = run_folder / concat("error_rank_", root.rank, ".json");
    std::error_code unreadable;
    if (std::filesystem::is_regular_file(details, unreadable)) text += "\n  details: " + details.string();
  }
  return text;
}

std::string utc(std::int64_t at_ns) {
  using namespace std::chrono;
  const auto time =
      system_clock::now() - duration_cast<system_clock::duration>(std::chrono::nanoseconds(now_ns() - at_ns));
  const std::time_t whole = system_clock::to_time_t(time);
  const auto milliseconds_in = duration_cast<milliseconds>(time.time_since_epoch()).count() % 1000;
  std::tm parts{};
  ::gmtime_r(&whole, &parts);
  std::array<char, 64> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text.data() + size, text.size() - size, ".%03dZ", static_cast<int>(milliseconds_in));
  return text.data();
}

}  // namespace wd::launcher
