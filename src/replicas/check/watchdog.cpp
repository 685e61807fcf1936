// watchdog.cpp: measures how long the current call takes.
#include "src/replicas/check/watchdog.h"

#include <utility>

#include "src/base/stopwatch.h"

namespace wd {
namespace {

// The current call; there is only one at a time.
struct Current {
  std::mutex mutex;
  std::function<std::string()> what;
  Stopwatch watch;
};

Current& current() {
  static Current current;
  return current;
}

}  // namespace

WatchedCall::WatchedCall(std::function<std::string()> what) {
  const std::lock_guard lock(current().mutex);
  current().what = std::move(what);
  current().watch = Stopwatch();
}

WatchedCall::~WatchedCall() {
  const std::lock_guard lock(current().mutex);
  current().what = nullptr;
}

Watchdog::Watchdog(double seconds, std::function<void(const std::string& what)> hung)
    : ticker_(std::chrono::milliseconds(100), [seconds, hung = std::move(hung)] {
        const std::lock_guard lock(current().mutex);
        if (current().what && current().watch.seconds() > seconds) hung(current().what());
      }) {}

}  // namespace wd
