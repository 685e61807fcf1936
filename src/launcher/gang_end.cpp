// gang_end.cpp: how workers end: normally, by failure, by a hang, or because they are asked to end.
#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "src/launcher/gang.h"
#include "src/worker/monotonic.h"
#include "wd/error.h"

namespace wd::launcher {
namespace {

constexpr double kSettleSeconds = 0.3;  // after the first failure is seen, to collect earlier failures
constexpr double kAskSeconds = 0.5;     // for the backtrace of a hung worker
constexpr double kKillSeconds = 1.5;    // for the kernel to end a worker
constexpr int kHangCode = 124;          // like timeout(1)

// Examples: "120 s", "1.5 s".
std::string in_seconds(std::int64_t nanoseconds) {
  const double time = seconds(nanoseconds);
  return concat(time < 10 ? std::round(10 * time) / 10 : std::round(time), " s");
}

bool is_stopped(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // "PID (NAME) STATE ..."
  return name_end != std::string::npos && name_end + 2 < text.size() &&
         (text[name_end + 2] == 'T' || text[name_end + 2] == 't');
}

std::string describe_end(int status) {
  if (WIFEXITED(status)) {
    const int code = WEXITSTATUS(status);
    return concat("ended with exit code ", code, code == 0 ? " before it had finished" : "");
  }
  const std::string name = signal_name(WTERMSIG(status));
  if (WTERMSIG(status) == SIGKILL)
    return "was killed by SIGKILL (by the system's out-of-memory killer, or by hand)";
  return "was ended by " + name;
}

}  // namespace

// A launcher that was stopped, or whose machine was suspended, has seen nothing, so the time limits are
// extended by the gap.
void Gang::ignore_gap(std::int64_t gap) {
  hangs_.ignore_gap(gap);
  deadline_ += gap;
  for (Worker& worker : workers_) {
    if (worker.report_seen_ns > 0) worker.report_seen_ns += gap;
  }
}

// The first signal is passed on; a second one of a person (INT, TERM) ends the workers at once. HUP never
// does: when a terminal closes, the kernel sends it and the shell once more, and systemd sends it after TERM.
void Gang::take_signals() {
  for (const int signal : launch_.signals.take()) {
    const bool stopping = !passed_on_.empty() || state_ != State::kRunning;
    if (signal == SIGHUP && stopping) continue;
    const bool again = state_ != State::kRunning ||
                       std::ranges::any_of(passed_on_, [](int before) { return before != SIGHUP; });
    passed_on_.push_back(signal);
    if (again) {
      ending_.interrupted = ending_.interrupted || passed_on_.size() > 1;
      send_all(SIGKILL);
      enter(State::kKilling, kKillSeconds);
      continue;
    }
    launch_.console.say(Level::kInfo, signal == SIGHUP
                                          ? "hung up (SIGHUP): stopping after this iteration"
                                          : "stopping after this iteration; once more to stop at once");
    send_all(signal);
  }
}

// Determines whether the end of a worker is a failure or was requested.
void Gang::classify_exit(int local_rank, int status) {
  const WorkerStatus& slot = memory_.slots()[static_cast<std::size_t>(local_rank)];
  if (workers_[static_cast<std::size_t>(local_rank)].failed) return;  // a hang
  const bool told_to_end = state_ == State::kTerminating || state_ == State::kKilling;
  const bool reported = slot.failed.load() == 2;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (!reported && code >= 0 && code == slot.exit_code.load()) {
    if (ending_.exit_code == 0) ending_.exit_code = code;
    return;
  }
  const bool by_us = (signal == SIGTERM && told_to_end) || (signal == SIGKILL && state_ == State::kKilling);
  const bool passed_on = std::ranges::count(passed_on_, signal) > 0;
  if (!reported && passed_on) ending_.interrupted = true;
  if (!reported && (by_us || passed_on || (code >= 0 && told_to_end))) return;

  const std::int64_t now = now_ns();
  const bool has_time = reported && slot.failed_at_ns > 0 && slot.failed_at_ns < now;
  Failure failure = describe_slot(slot, has_time ? slot.failed_at_ns : now);
  failure.message = reported ? read_text(slot.message) : describe_end(status);
  failure.secondary = reported && slot.secondary != 0;
  if (signal > 0 && !by_us) failure.signal = signal_name(signal);
  if (code >= 0) failure.exit_code = code;
  failure.code = code > 0 ? code : signal > 0 && !by_us ? 128 + signal : 1;
  record_failure(local_rank, failure);
}

void Gang::record_failure(int local_rank, const Failure& failure) {
  Worker& worker = workers_[static_cast<std::size_t>(local_rank)];
  worker.failed = true;
  ending_.failures.push_back(failure);
  Failure& kept = ending_.failures.back();
  kept.local_rank = local_rank;
  kept.rank = rank_of(local_rank);
  kept.pid = worker.pid;
  kept.restart = restart_;
}

void Gang::enter(State state, double seconds) {
  state_ = state;
  deadline_ = now_ns() + nanoseconds(seconds);
}

// If one worker ends, or has reported that it will end but does not, all are ended. First, workers that fail
// at the same time can report; then the others are asked to end; then they are killed.
void Gang::act(std::int64_t now) {
  const LaunchOptions& options = launch_.options;
  bool overdue = false;
  for (std::size_t k = 0; k < workers_.size(); ++k) {
    Worker& worker = workers_[k];
    if (worker.report_seen_ns == 0 && memory_.slots()[k].failed.load() == 2) worker.report_seen_ns = now;
    if (worker.alive && worker.report_seen_ns > 0)
      overdue = overdue || now - worker.report_seen_ns > nanoseconds(options.grace_seconds);
  }
  switch (state_) {
    case State::kRunning:
      if (!ending_.failures.empty() || ending_.interrupted || overdue)
        return enter(State::kSettling, kSettleSeconds);
      return look_for_hang(now);
    case State::kAsking:
      if (now > deadline_ || all_asked_have_answered()) end_hang();
      return;
    case State::kSettling:
      if (now <= deadline_) return;
      enter(State::kTerminating, options.grace_seconds);
      send_all(SIGTERM);
      return send_all(SIGCONT);  // a stopped worker would not receive SIGTERM
    case State::kTerminating:
      if (now <= deadline_) return;
      enter(State::kKilling, kKillSeconds);
      return send_all(SIGKILL);
    case State::kKilling:
      return;
  }
}

void Gang::look_for_hang(std::int64_t now) {
  const std::optional<Hang> found = hangs_.look(now, alive(), [this](int local_rank) {
    return is_stopped(workers_[static_cast<std::size_t>(local_rank)].pid);
  });
  if (!found) return;
  hang_ = *found;
  enter(State::kAsking, kAskSeconds);
  for (const int culprit : hang_.culprits) send(culprit, SIGQUIT);
}

bool Gang::all_asked_have_answered() const {
  return std::ranges::all_of(hang_.culprits, [this](int culprit) {
    const std::size_t k = static_cast<std::size_t>(culprit);
    return !workers_[k].alive || memory_.slots()[k].has_backtrace.load() != 0;
  });
}

// The hung workers are killed first. Connections to them break, so the workers that wait for them can end by
// themselves.
void Gang::end_hang() {
  std::vector<int> waiting;
  for (const int local_rank : hang_.waiting) waiting.push_back(rank_of(local_rank));
  for (const int culprit : hang_.culprits) {
    const Worker& worker = workers_[static_cast<std::size_t>(culprit)];
    if (!worker.alive || worker.failed) continue;
    const WorkerStatus& slot = memory_.slots()[static_cast<std::size_t>(culprit)];
    Failure failure = describe_slot(slot, hangs_.last_progress(culprit));
    failure.message = concat("made no progress for ", in_seconds(now_ns() - failure.at_ns));
    if (is_stopped(worker.pid)) failure.message += "; it is stopped (SIGSTOP)";
    if (!waiting.empty())
      failure.message += concat("; ", list_ranks(waiting), waiting.size() == 1 ? " waits" : " wait",
                                " for it in a collective");
    if (hang_.all_wait)
      failure.message +=
          ": all workers of this node wait in the same collective, for one that has ended or another node's";
    failure.secondary = hang_.all_wait && launch_.options.num_nodes > 1;
    failure.code = kHangCode;
    record_failure(culprit, failure);
    send(culprit, SIGKILL);
  }
  enter(State::kTerminating, launch_.options.grace_seconds);
  send_all(SIGTERM);
  send_all(SIGCONT);
}

}  // namespace wd::launcher
