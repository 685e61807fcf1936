// autoscale.h: finds the number of replicas and the rollout length that suit this machine: search options and
// results.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "wd/config.h"
#include "wd/detail/supervise.h"
#include "wd/environment.h"

namespace wd::scaling {

// The two numbers that the search chooses, both for the whole job over all workers.
struct Probe {
  std::int64_t num_envs = 0;       // replicas: E
  std::int64_t rollout_steps = 0;  // T

  std::int64_t batch() const { return num_envs * rollout_steps; }  // trainer.train_batch_size
  auto operator<=>(const Probe&) const = default;
};

enum class Kind {
  kFits,
  kOutOfMemory,  // CUDA, a host allocation, the OOM killer, or a peak beyond Limits::memory_bytes
  kTooSlow,      // not finished within its time limit
  kFailed,       // any other reason: ends the search, and never counts as "too big"
  kSkipped,      // not run, because the memory model predicts that it cannot fit
  kCutShort,     // the search ran out of time before it finished: says nothing about the setting
};

// The result of a probe.
struct ProbeEnd {
  Kind kind = Kind::kFailed;
  std::uint64_t bytes = 0;          // highest peak of any worker; 0: unknown
  double env_steps_per_s = 0.0;     // of the whole job, without warm-up; > 0 if it fits and has no ratios
  double seconds = 0.0;             // duration of the probe, including start and end
  std::string detail = {};          // for users: why it does not fit
  std::vector<double> ratios = {};  // speed relative to the reference setting, per turn; > 0

  bool operator==(const ProbeEnd&) const = default;
};

// Runs a short training for at most max_seconds (0: no limit), in a process that the probe may crash. With
// `reference`, a second setting trains in the same process, and the two take turns: whatever slows down the
// machine slows down both, and the outcome holds the ratios of their speeds. May throw, for example when
// interrupted, which ends the search.
using Measure =
    std::function<ProbeEnd(const Probe& probe, const std::optional<Probe>& reference, double max_seconds)>;

enum class Objective {
  // Replicas with memory left for min_rollout steps, then T, then the smallest setting that is as fast.
  kSpeed,
  // The same until memory is full, without the third stage.
  kMemory,
};

struct Limits {
  std::uint64_t memory_bytes = std::numeric_limits<std::uint64_t>::max();  // per worker
  std::int64_t max_envs = 10'000'000;
  std::int64_t max_batch = 10'000'000'000;
  std::int64_t min_batch = 1;  // so that every minibatch has a step or a sequence
  double max_seconds = 0.0;    // for all probes together; 0: no limit

  bool operator==(const Limits&) const = default;
};

// Bytes that one worker certainly allocates: the sum of its buffers, without any estimate. All zero: unknown.
struct Sizes {
  double fixed = 0.0, per_replica = 0.0, per_replica_step = 0.0;
  // Activations of rollouts that a GPU keeps if everything then takes at most room_with_kept.
  double kept_per_replica_step = 0.0, room_with_kept = 0.0;

  bool operator==(const Sizes&) const = default;
};

struct SearchOptions {
  Probe start;                                         // the configured setting
  int num_workers = 1;                                 // the number of replicas is a multiple of it,
  std::int64_t envs_unit = 1;                          // and of this
  std::int64_t min_rollout = 0;                        // minimum T; 0: start's T for kSpeed, 1 for kMemory
  std::string max_batch_from = "autoscale.max_batch";  // for messages: the origin of Limits::max_batch
  std::string max_envs_from = "autoscale.max_envs";    // the same of Limits::max_envs
  Objective objective = Objective::kSpeed;
  Limits limits = {};
  Sizes sizes = {};
  std::int64_t min_envs = 1;      // so that every minibatch has a replica, whose rollout is one sequence
  std::int64_t rollout_unit = 1;  // T is a multiple of it: of the length of sequences
};

enum class Stage { kReplicas, kRollout, kSmallest };

// One row of the table that is shown during the search.
struct Trial {
  Stage stage = Stage::kReplicas;
  Probe probe;
  // If it has ratios, its env_steps_per_s is their median times the speed of the reference.
  ProbeEnd outcome;
  std::uint64_t predicted_bytes = 0;    // predicted by the memory model before the probe
  std::optional<Probe> reference = {};  // ran in the same process

  bool operator==(const Trial&) const = default;
};

using Observe = std::function<void(const Trial&)>;

// Bytes of one worker: a + b E + c E T, where E is the number of replicas of the whole job.
using MemoryLine = Sizes;

enum class Status {
  kChosen,
  kNothingFits,  // not even the smallest setting fits
  kFailed,       // a probe failed for a reason that a smaller setting does not fix
};

struct SearchResult {
  Status status = Status::kNothingFits;
  Probe start;                   // as configured, within the limits
  Probe chosen;                  // valid if status is kChosen, as are the next two
  double env_steps_per_s = 0.0;  // median over its probes
  std::uint64_t bytes = 0;       // its highest peak
  std::string reason;            // why each search ended, or what went wrong
  bool at_max_batch = false;     // a search ended at Limits::max_batch and did not try larger ones
  MemoryLine memory;             // as measured
  std::vector<Trial> trials;     // in the order they ran

  bool operator==(const SearchResult&) const = default;
};

// Thrown if a signal ends a search.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(int signal) : std::runtime_error("the search was interrupted"), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

}  // namespace wd::scaling

namespace wd {

struct AutoscaleOptions {
  LaunchOptions launch = {};      // the workers that will train, all on this machine
  bool refresh = false;           // search even if a result is cached
  scaling::Observe observe = {};  // called for each probe
};

struct Autoscaled {
  scaling::SearchResult result;
  bool cached = false;             // the result comes from the cache
  std::vector<Override> settings;  // append to ConfigSources::overrides
  std::vector<std::string> notes;  // messages for the user
  std::string json;                // content of autoscale.json, for the run's folder
};

// Finds trainer.num_envs and trainer.train_batch_size by short trainings with the settings in
// config.autoscale. Each probe runs in copies of this program: a copy does what main() does up to this call,
// runs its probe, and exits here. So call it in main(), before anything that starts a thread or touches CUDA,
// and on the same code path for the same command line. The result is cached in $XDG_CACHE_HOME/wd/autoscale,
// or else ~/.cache/wd/autoscale, and reused when everything is the same. Throws UsageError if nothing fits or
// the limits leave nothing to try, std::runtime_error if a probe failed for a reason other than memory or
// time, and scaling::Interrupted.
Autoscaled autoscale(const Config& config, Environment& environment, const AutoscaleOptions& options = {});

}  // namespace wd
