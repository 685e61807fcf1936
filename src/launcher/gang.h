// gang.h: the workers of one attempt on this node: started together, watched, and stopped together.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/launcher/child.h"
#include "src/launcher/console.h"
#include "src/launcher/failure.h"
#include "src/launcher/hang.h"
#include "src/launcher/output.h"
#include "src/launcher/rendezvous.h"
#include "src/launcher/signals.h"
#include "src/launcher/status_memory.h"

namespace wd::launcher {

// What stays the same over all attempts.
struct Launch {
  const LaunchOptions& options;
  const std::vector<std::string>& command;
  std::vector<std::string> gpus;  // one a worker; empty: workers see what this process sees
  std::string run_id;
  Signals& signals;
  Console& console;
  std::vector<std::pair<std::string, std::string>> variables =
      {};  // for the workers' environment, beside ours
};

// How an attempt went.
struct Ending {
  std::vector<Failure> failures;     // in no order
  std::filesystem::path run_folder;  // empty where no worker named one
  std::int64_t iteration = 0;        // the furthest that a worker has begun
  int exit_code = 0;                 // of workers that ended in good order; the first that is not 0
  bool interrupted = false;          // a worker was ended by a signal that this process was told to pass on
};

class Gang {
 public:
  // `restart_folder`: the run with which workers go on; empty at first.
  Gang(const Launch& launch, int restart, std::filesystem::path restart_folder);
  ~Gang();  // ends all workers that still run, at once
  Gang(const Gang&) = delete;
  Gang& operator=(const Gang&) = delete;

  // Starts the workers. Throws std::runtime_error where the program cannot be.
  void start(Meeting meeting);
  // Until all workers have ended. `while_starting` is called again and again until all have left their first
  // phase.
  Ending watch(const std::function<void()>& while_starting);

 private:
  enum class State { kRunning, kAsking, kSettling, kTerminating, kKilling };
  struct Worker {
    pid_t pid = 0;
    WorkerOutput output;
    bool alive = false;
    bool failed = false;              // is in failures_
    std::int64_t report_seen_ns = 0;  // 0: has reported no failure
  };

  ChildPlan plan_for(int local_rank, const Meeting& meeting) const;
  int rank_of(int local_rank) const;
  void wait();
  void ignore_gap(std::int64_t gap);
  void take_signals();
  void reap();
  void on_exit(int local_rank, int status);
  void classify_exit(int local_rank, int status);
  void record_failure(int local_rank, const Failure& failure);
  void find_folder();
  void act(std::int64_t now);
  void look_for_hang(std::int64_t now);
  void end_hang();
  bool all_asked_have_answered() const;
  void enter(State state, double seconds);
  void send(int local_rank, int signal);
  void send_all(int signal);
  bool any_alive() const;
  bool any_starting() const;
  std::vector<bool> alive() const;

  const Launch& launch_;
  int restart_;
  std::filesystem::path restart_folder_;
  StatusMemory memory_;
  HangWatch hangs_;
  std::vector<Worker> workers_;
  Ending ending_;
  Hang hang_;  // in kAsking
  State state_ = State::kRunning;
  std::int64_t deadline_ = 0;  // of the state
  std::int64_t turned_at_ = 0;
  std::vector<int> passed_on_;  // signals
};

}  // namespace wd::launcher
