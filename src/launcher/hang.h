// hang.h: who has stopped making progress, and who only waits for them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "src/worker/status.h"
#include "wd/supervise.h"

namespace wd::launcher {

struct Hang {
  std::vector<int> culprits;  // local ranks
  std::vector<int> waiting;   // local ranks that wait in a collective operation for the culprits
  bool all_wait = false;      // the culprits all wait in the same one: whom they wait for is not known here
};

class HangWatch {
 public:
  HangWatch(const LaunchOptions& options, std::span<const WorkerStatus> slots, std::int64_t now);

  // Looks at all slots. `alive` says which workers still run; one that does not is never hung.
  // is_stopped(local rank): by SIGSTOP, so that it waits for nobody, wherever it stands.
  std::optional<Hang> look(std::int64_t now, const std::vector<bool>& alive,
                           const std::function<bool(int)>& is_stopped);

  // The launcher itself did not run for this long: nobody is to blame for it.
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
