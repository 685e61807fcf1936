// watchdog.cpp: a thread that measures how long the current call takes.
#include "src/replicas/check/watchdog.h"

#include <chrono>
#include <utility>

namespace wd {
namespace {

using Clock = std::chrono::steady_clock;

// The current call; there is only one at a time.
struct Current {
  std::mutex mutex;
  std::function<std::string()> what;
  Clock::time_point since;
};

Current& current() {
  static Current current;
  return current;
}

}  // namespace

WatchedCall::WatchedCall(std::function<std::string()> what) {
  const std::lock_guard lock(current().mutex);
  current().what = std::move(what);
  current().since = Clock::now();
}

WatchedCall::~WatchedCall() {
  const std::lock_guard lock(current().mutex);
  current().what = nullptr;
}

Watchdog::Watchdog(double seconds, std::function<void(const std::string& what)> hung)
    : seconds_(seconds), hung_(std::move(hung)), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ending_.notify_all();
  thread_.join();
}

void Watchdog::watch() {
  constexpr std::chrono::milliseconds kPause(100);
  std::unique_lock lock(mutex_);
  while (!ending_.wait_for(lock, kPause, [this] { return ended_; })) {
    const std::lock_guard call(current().mutex);
    if (current().what && std::chrono::duration<double>(Clock::now() - current().since).count() > seconds_)
      hung_(current().what());
  }
}

}  // namespace wd
