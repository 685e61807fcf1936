// hang.h: finds the workers that have stopped making progress, and those that only wait for them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "src/worker/status.h"
#include "wd/detail/supervise.h"

namespace wd::launcher {

struct Hang {
  std::vector<int> culprits;  // local ranks
  std::vector<int> waiting;   // local ranks that wait in a collective operation for the culprits
  // The culprits all wait in the same operation; it is unknown here which worker they wait for.
  bool all_wait = false;
};

class HangWatch {
 public:
  HangWatch(const LaunchOptions& options, std::span<const WorkerStatus> slots, std::int64_t now);

  // Checks all slots. `alive` says which workers still run; a worker that has ended never counts as hung.
  // is_stopped(local rank) says whether the worker was stopped by SIGSTOP; then it does not count as waiting
  // for others.
  std::optional<Hang> look(std::int64_t now, const std::vector<bool>& alive,
                           const std::function<bool(int)>& is_stopped);

  // The launcher itself did not run for this long. Shifts all times, so that no worker is blamed.
  void ignore_gap(std::int64_t gap);

  std::int64_t last_progress(int local_rank) const;

 private:
  struct Seen {
    std::uint64_t beats = 0, collectives = 0;
    std::int64_t iteration = 0;
    int phase = 0;
    bool operator==(const Seen&) const = default;
  };
  static Seen see(const WorkerStatus& slot);
  std::int64_t silence(std::size_t k, std::int64_t now) const { return now - changed_[k]; }
  std::int64_t limit(std::size_t k) const;
  std::optional<Hang> look_at_waiting(std::int64_t now, const std::vector<bool>& alive) const;

  const LaunchOptions& options_;
  std::span<const WorkerStatus> slots_;
  std::vector<Seen> seen_;
  std::vector<std::int64_t> changed_;
};

}  // namespace wd::launcher
