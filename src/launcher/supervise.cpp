// supervise.cpp: runs attempts until one succeeds or no other is allowed.
#include "wd/detail/supervise.h"

#include "src/launcher/gang.h"
#include "src/launcher/options.h"
#include "src/worker/monotonic.h"
#include "wd/error.h"

namespace wd {
namespace launcher {
namespace {

constexpr int kUsageCode = 2;         // a usage error, which a restart does not fix
constexpr double kRemoteSeconds = 2;  // time for another node's launcher to record the cause
constexpr double kClockSlack = 5;     // [s] between the clocks of nodes

class Supervisor {
 public:
  Supervisor(const LaunchOptions& options, const std::vector<std::string>& command)
      : options_(options),
        launch_{.options = options,
                .command = command,
                .gpus = choose_gpus(options),
                .run_id = run_id(options),
                .signals = signals_,
                .console = console_},
        rendezvous_(make_rendezvous(options)) {}
  ~Supervisor() { console_.finish(); }
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  int run() {
    for (int restart = 0;; ++restart) {
      std::optional<Meeting> meeting = rendezvous_->meet(restart, signals_);
      if (!meeting) return 128 + signals_.first();
      const std::int64_t began = now_ns();
      const Ending outcome = attempt(restart, std::move(*meeting));
      if (is_in_order(outcome)) {
        if (outcome.interrupted) close_summary("ended at once by a signal");
        return exit_code(outcome);
      }
      const std::optional<Failure> remote = find_remote(outcome, began, restart);
      const Failure& root = remote ? *remote : root_cause(outcome.failures);
      write_down(outcome, root, remote.has_value());
      if (!goes_on(outcome, root, restart)) {
        close_summary(root.message);
        return root.code;
      }
      reached_ = outcome.iteration;
    }
  }

 private:
  Ending attempt(int restart, Meeting meeting) {
    Gang gang(launch_, restart, folder_);
    gang.start(std::move(meeting));
    Ending outcome = gang.watch([this] { rendezvous_->keep(); });
    if (!outcome.run_folder.empty()) folder_ = outcome.run_folder;
    return outcome;
  }

  // If a worker was ended by the signal passed on to it, its peers have lost it. That is not a failure of the
  // peers.
  static bool is_in_order(const Ending& outcome) {
    return outcome.failures.empty() || (outcome.interrupted && root_cause(outcome.failures).secondary);
  }

  // Workers that finished before they received the signal count as finished.
  int exit_code(const Ending& outcome) const {
    const bool incomplete = outcome.exit_code != 0 || outcome.interrupted;
    return incomplete && signals_.first() != 0 ? 128 + signals_.first() : outcome.exit_code;
  }

  bool is_elsewhere(const Failure& root) const { return root.secondary && options_.num_nodes > 1; }

  // If all failures on this node are consequences, returns the cause if another node's launcher has written
  // it to the same folder.
  std::optional<Failure> find_remote(const Ending& outcome, std::int64_t began, int restart) const {
    if (!is_elsewhere(root_cause(outcome.failures)) || folder_.empty()) return {};
    const std::string since = utc(began - nanoseconds(kClockSlack));
    const std::int64_t deadline = now_ns() + nanoseconds(kRemoteSeconds);
    std::optional<Failure> found;
    do {
      constexpr int kPollMilliseconds = 50;
      signals_.wait(kPollMilliseconds);
      found = find_remote_cause(folder_, since, restart);
    } while (!found && now_ns() < deadline && signals_.first() == 0);
    return found;
  }

  void write_down(const Ending& outcome, const Failure& root, bool remote) {
    if (folder_.empty()) return;
    try {
      write_failures(folder_, outcome.failures, remote || is_elsewhere(root) ? nullptr : &root);
    } catch (const std::runtime_error& error) {
      console_.say(Level::kWarning, concat("the failure cannot be written down: ", error.what()));
    }
  }

  // Only on node 0, which has rank 0.
  void close_summary(const std::string& reason) {
    if (folder_.empty() || options_.node_index != 0) return;
    try {
      mark_failed(folder_, reason);
    } catch (const std::runtime_error& error) {
      console_.say(Level::kWarning, concat("summary.json still says that the run goes on: ", error.what()));
    }
  }

  // Reports the failure and whether another attempt follows. Returns whether it does.
  bool goes_on(const Ending& outcome, const Failure& root, int restart) {
    std::string text = describe(root) + describe_rest(outcome.failures, root, folder_);
    if (is_elsewhere(root)) text += "\n  the cause is on another node: see what its launcher says";
    const bool may = restart < options_.max_restarts && root.code != kUsageCode && signals_.first() == 0;
    const bool progress = outcome.iteration > reached_;
    if (may && progress) {
      console_.say(Level::kWarning, concat(text, "\n  restart ", restart + 1, " of ", options_.max_restarts));
      return true;
    }
    if (may)
      text += concat("\n  no restart: the attempt before failed in iteration ", reached_,
                     ", and this one came no further");
    console_.say(Level::kError, text);
    return false;
  }

  const LaunchOptions& options_;
  Signals signals_;
  Console console_;
  Launch launch_;
  std::unique_ptr<Rendezvous> rendezvous_;
  std::filesystem::path folder_;  // of the run, if known
  std::int64_t reached_ = -1;     // highest iteration of the previous attempt
};

}  // namespace
}  // namespace launcher

int supervise(const LaunchOptions& options, const std::vector<std::string>& command) {
  WD_CHECK(!command.empty(), "the launcher: no program to start");
  launcher::check_settings(options);
  return launcher::Supervisor(options, command).run();
}

}  // namespace wd
