// heartbeat.h: the status that a worker reports while it works, which its launcher can read even after a
// SIGKILL.
#pragma once

#include <cstdint>
#include <string_view>

namespace wd::heartbeat {

// Each activity has its own limit on the time without a report (LaunchOptions).
enum class Activity : int { kStarting, kRollout, kUpdate, kCheckpoint, kDone };

// All of these write to memory shared with the launcher, or to private memory if there is no launcher. They
// cost a few atomic stores, never fail, and are safe from any thread.
void beat();  // reports progress
void enter(Activity activity);
void iteration(std::int64_t number);  // the iteration that begins, counted from 1

// Create one around every collective operation: a silent rank inside one is waiting for others.
class Collective {
 public:
  Collective();
  ~Collective();
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;
};

// "cpu", "cuda:0"
void device(std::string_view name);
// An absolute path. From then on, the launcher keeps logs and error reports there.
void run_folder(std::string_view path);

// Reports why this worker is about to end. `secondary`: only because another one ended. The first report
// counts.
void failed(std::string_view message, bool secondary);
// Reports that this worker ends normally, with this exit code.
void finished(int exit_code);

// Installs signal handlers. A crash (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT) then leaves its cause and a
// backtrace before it ends the process as usual: with the launcher, or, if no launcher started this process,
// on stderr and in error.json of the run's folder. SIGQUIT, which a launcher sends to find out where a worker
// hangs, leaves a backtrace and ends nothing. Call it once in the main thread, before other threads start.
void watch_crashes();

}  // namespace wd::heartbeat
