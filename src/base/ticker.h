// ticker.h: calls a function again and again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "src/base/thread.h"

namespace wd {

// Calls tick() on a thread of its own, after each pause, for as long as this object lives.
class Ticker {
 public:
  Ticker(std::chrono::duration<double> pause, std::function<void()> tick)
      : thread_(
            start_thread<std::jthread>([this, pause, tick = std::move(tick)](const std::stop_token& stop) {
              std::unique_lock lock(mutex_);
              while (!end_.wait_for(lock, stop, pause, [] { return false; }) && !stop.stop_requested())
                tick();
            })) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any end_;
  std::jthread thread_;  // last member, so that it ends first
};

}  // namespace wd
