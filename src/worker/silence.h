// silence.h: warns when a process that trains alone makes no progress; workers have their launcher for that.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace wd {

// Monitors this process's heartbeat, and warns once for each silence of at least `limit` seconds.
class SilenceWatch {
 public:
  explicit SilenceWatch(double limit);

 private:
  void look(const std::stop_token& stop, double limit);

  std::mutex mutex_;
  std::condition_variable_any end_;
  std::jthread thread_;  // last member, so that it ends first
};

}  // namespace wd
