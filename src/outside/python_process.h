// python_process.h: one process of Python that makes and steps environments (python/wdtrain/worker.py).
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>

#include "src/base/child_process.h"
#include "src/outside/bell.h"
#include "src/outside/memory.h"

namespace wd::outside {

// The process raised an exception, ended, or does not answer. The message says which process, and what it
// said.
class ProcessFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct ProcessOptions {
  std::string environment;             // for messages
  std::string python;                  // path of the interpreter
  std::string modules;                 // PYTHONPATH; empty: as it is
  double start_seconds, step_seconds;  // limits of the time until an answer
  int spin_microseconds = 0;           // how long either side waits before it sleeps
  std::function<void()> look;          // called during waits; may throw. Empty: nothing
};

class PythonProcess {
 public:
  using Clock = std::chrono::steady_clock;

  // Starts it. Throws UsageError if there is no such interpreter.
  PythonProcess(int number, ProcessOptions options);
  // Lets it close its environments; kills it if that takes too long. What it has started ends with it.
  ~PythonProcess();
  PythonProcess(const PythonProcess&) = delete;
  PythonProcess& operator=(const PythonProcess&) = delete;

  // Sends a request and returns the answer. Throws ProcessFailed, after which the process is gone.
  nlohmann::json call(const nlohmann::json& request, int descriptor = -1);
  // Lets it close the environments of a room, and waits until it has, at most 10 s from `begun` on. Both
  // throw ProcessFailed.
  void begin_close(int room, Clock::time_point begun);
  void end_close(int room, Clock::time_point begun);
  // The next bytes, which follow an answer.
  std::string read(std::size_t bytes);
  // Lets it step the replicas of a room, and waits until it has. Throws ProcessFailed.
  void begin_step(int room);
  void end_step();

  pid_t pid() const { return child_.pid; }

 private:
  struct Control;

  Control& control() const { return *reinterpret_cast<Control*>(memory_.data()); }
  void post(int room);
  void send(const nlohmann::json& request, int descriptor = -1);
  // `seconds` from `begun` on; `limit` is their name, for messages.
  void await(Clock::time_point begun, double seconds, const char* limit);
  [[noreturn]] void fail(const std::string& what);
  [[noreturn]] void fail_hung(double seconds, const char* limit);
  bool has_ended();
  bool ends_within(double seconds);
  std::string name() const;  // for messages
  void kill();
  nlohmann::json answer();

  int number_;
  ProcessOptions options_;
  Memory memory_;
  Descriptor socket_;
  Child child_;
  bool ended_ = false;
  bool stepping_ = false;  // a step has begun, and was not waited for
  bool continued_ = false;
  int status_ = -1;  // of waitpid(2), once it has ended; -1: unknown
  std::int32_t posted_ = 0;
};

}  // namespace wd::outside
