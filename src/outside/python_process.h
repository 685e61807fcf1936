// python_process.h: one process of Python that makes and steps environments (python/wdtrain/worker.py).
#pragma once

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
  double start_seconds, step_seconds;  // limits of the time until an answer
  int spin_microseconds = 0;           // how long either side waits before it sleeps
};

class PythonProcess {
 public:
  // Starts it. Throws UsageError if there is no such interpreter.
  PythonProcess(int number, ProcessOptions options);
  // Lets it close its environments; kills it if that takes too long.
  ~PythonProcess();
  PythonProcess(const PythonProcess&) = delete;
  PythonProcess& operator=(const PythonProcess&) = delete;

  // Sends a request and returns the answer. Throws ProcessFailed, after which the process is gone.
  nlohmann::json call(const nlohmann::json& request, int descriptor = -1);
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
  void await(double seconds);
  [[noreturn]] void fail(const std::string& what);
  [[noreturn]] void fail_hung(double seconds);
  bool has_ended();
  bool ends_within(double seconds);
  void kill();
  nlohmann::json answer();

  int number_;
  ProcessOptions options_;
  Memory memory_;
  Descriptor socket_;
  Child child_;
  bool ended_ = false;
  bool stepping_ = false;  // a step has begun, and was not waited for
  int status_ = 0;         // of waitpid(2), once it has ended
  std::int32_t posted_ = 0;
};

}  // namespace wd::outside
