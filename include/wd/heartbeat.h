// heartbeat.h: what a worker says of itself while it works, where its launcher can read it even after a
// SIGKILL.
#pragma once

#include <cstdint>
#include <string_view>

namespace wd::heartbeat {

// Each phase has its own limit of silence (LaunchOptions).
enum class Phase : int { kStarting, kRollout, kUpdate, kCheckpoint, kEvaluation, kDone };

// All of these write to memory shared with the launcher, or to this process's own where there is none. They
// cost some atomic stores, never fail, and are safe from any thread.
void beat();  // progress was made
void enter(Phase phase);
void iteration(std::int64_t number);  // counted from 1: the one that begins

// Around every collective operation: a silent rank that is inside one waits for others.
class Collective {
 public:
  Collective();
  ~Collective();
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;
};

// "cpu", "cuda:0"
void device(std::string_view name);
// Absolute. From here on the launcher keeps logs and error reports there.
void run_folder(std::string_view path);

// Why this worker is about to end. `secondary`: only because another one did. The first report counts.
void failed(std::string_view message, bool secondary);
// This worker ends in good order with this exit code.
void finished(int exit_code);

// A crash (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT) leaves its cause and a backtrace before it ends the
// process as ever: with the launcher, or, where none started this process, on stderr and in error.json of the
// run's folder. SIGQUIT, by which a launcher asks a hung worker where it stands, leaves a backtrace and ends
// nothing. For the main thread, once, before others are started.
void watch_crashes();

}  // namespace wd::heartbeat
