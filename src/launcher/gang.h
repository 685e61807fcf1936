// gang.h: the workers of one attempt on this node, which are started, watched and stopped together.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/base/child_process.h"
#include "src/launcher/console.h"
#include "src/launcher/failure.h"
#include "src/launcher/hang.h"
#include "src/launcher/output.h"
#include "src/launcher/rendezvous.h"
#include "src/launcher/signals.h"
#include "src/launcher/status_memory.h"

namespace wd::launcher {

// Properties that all attempts share.
struct Launch {
  const LaunchOptions& options;
  const std::vector<std::string>& command;
  std::vector<std::string> gpus;  // one per worker; if empty, workers see the GPUs that this process sees
  std::string run_id;
  Signals& signals;
  Console& console;
  // Added to the workers' environment in addition to this process's variables.
  std::vector<std::pair<std::string, std::string>> variables = {};
};

// Result of an attempt.
struct Ending {
  std::vector<Failure> failures;     // in any order
  std::filesystem::path run_folder;  // empty if no worker named one
  std::int64_t iteration = 0;        // highest iteration that a worker has begun
  int exit_code = 0;                 // of workers that ended without failure; the first nonzero one
  bool interrupted = false;          // a signal passed on by this process, or a second one, ended a worker
};

class Gang {
 public:
  // `restart_folder` is the folder of the run that the workers continue; empty in the first attempt.
  Gang(const Launch& launch, int restart, std::filesystem::path restart_folder);
  ~Gang();  // kills all workers that are still running
  Gang(const Gang&) = delete;
  Gang& operator=(const Gang&) = delete;

  // Starts the workers. Throws std::runtime_error if the program cannot be started.
  void start(Meeting meeting);
  // Returns when all workers have ended. Calls `while_starting` repeatedly until all workers have left their
  // first phase.
  Ending watch(const std::function<void()>& while_starting);

 private:
  enum class State { kRunning, kAsking, kSettling, kTerminating, kKilling };
  struct Worker {
    pid_t pid = 0;
    WorkerOutput output;
    bool alive = false;
    bool failed = false;              // recorded in failures_
    std::int64_t report_seen_ns = 0;  // 0: no failure reported
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
  Hang hang_;  // set in state kAsking
  State state_ = State::kRunning;
  std::int64_t deadline_ = 0;  // end of the current state
  std::int64_t turned_at_ = 0;
  std::vector<int> passed_on_;  // signals passed on to the workers
};

}  // namespace wd::launcher
