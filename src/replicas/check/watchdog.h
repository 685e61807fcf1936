// watchdog.h: a call into the environment that does not end is named, and ends the process.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace wd {

class Watchdog {
 public:
  // hung(what) is called on the watchdog's own thread where one call lasts longer than `seconds`; it must end
  // the process.
  Watchdog(double seconds, std::function<void(const std::string& what)> hung);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch();

  double seconds_;
  std::function<void(const std::string&)> hung_;
  std::mutex mutex_;
  std::condition_variable ending_;
  bool ended_ = false;
  std::thread thread_;
};

// Stands around one call into the environment. `what` says where it is; the watchdog asks while the call
// runs.
class WatchedCall {
 public:
  explicit WatchedCall(std::function<std::string()> what);
  ~WatchedCall();
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;
};

}  // namespace wd
