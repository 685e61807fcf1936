// autoscale.h: how many replicas and how long a rollout, for this machine: what is looked for, and what was
// found.
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
#include "wd/environment.h"
#include "wd/supervise.h"

namespace wd::scaling {

// The two numbers that are looked for. Both are of the whole job, over all workers.
struct Probe {
  std::int64_t num_envs = 0;       // replicas: E
  std::int64_t rollout_steps = 0;  // T

  std::int64_t batch() const { return num_envs * rollout_steps; }  // trainer.train_batch_size
  auto operator<=>(const Probe&) const = default;
};

enum class Kind {
  kFits,
  kOutOfMemory,  // CUDA, a host allocation, the OOM killer, or a peak beyond Limits::memory_bytes
  kTooSlow,      // not done within the time that it was given
  kFailed,       // anything else: ends the search, and never counts as "too big"
  kSkipped,      // not run, since the memory model leaves no hope
  kCutShort,     // the search's time was over before it was done: says nothing about the setting
};

// What came of a probe.
struct Outcome {
  Kind kind = Kind::kFailed;
  std::uint64_t bytes = 0;          // peak of the fullest worker; 0: not known
  double env_steps_per_s = 0.0;     // of the whole job, warm-up excluded; > 0 where it fits and has no ratios
  double seconds = 0.0;             // that the probe took, start and end included
  std::string detail = {};          // for people: why it does not fit
  std::vector<double> ratios = {};  // speeds over those of the reference setting, turn by turn; > 0

  bool operator==(const Outcome&) const = default;
};

// Runs a short training for at most max_seconds (0: as long as it takes), in a process that may die of it.
// With `reference`, a second setting trains in the same process, the two in turns: what slows the machine
// slows both, and the outcome holds their ratios. May throw, which ends the search: an interruption, say.
using Measure =
    std::function<Outcome(const Probe& probe, const std::optional<Probe>& reference, double max_seconds)>;

enum class Objective {
  kSpeed,   // replicas with min_rollout steps kept free, then T, then the smallest setting that is as fast
  kMemory,  // the same, to where memory is full, and no third stage
};

struct Limits {
  std::uint64_t memory_bytes = std::numeric_limits<std::uint64_t>::max();  // of one worker
  std::int64_t max_envs = 10'000'000;
  std::int64_t max_batch = 10'000'000'000;
  std::int64_t min_batch = 1;  // so that every minibatch has a row
  double max_seconds = 0.0;    // of all probes together; 0: no limit

  bool operator==(const Limits&) const = default;
};

// Bytes that one worker allocates for certain: what its buffers add up to, none of it guessed. Zeros: nothing
// is known.
struct Sizes {
  double fixed = 0.0, per_replica = 0.0, per_replica_step = 0.0;
};

struct SearchOptions {
  Probe start;                                         // the configured setting
  int num_workers = 1;                                 // replicas come in multiples of it
  std::int64_t min_rollout = 0;                        // least T; 0: start's for kSpeed, 1 for kMemory
  std::string max_batch_from = "autoscale.max_batch";  // what Limits::max_batch follows from, for people
  Objective objective = Objective::kSpeed;
  Limits limits = {};
  Sizes sizes = {};
};

enum class Stage { kReplicas, kRollout, kSmallest };

// One line of the table that people watch.
struct Trial {
  Stage stage = Stage::kReplicas;
  Probe probe;
  Outcome outcome;  // its env_steps_per_s, where it has ratios: the median times the other's speed
  std::uint64_t predicted_bytes = 0;    // by the memory model, before the probe
  std::optional<Probe> reference = {};  // in the same process

  bool operator==(const Trial&) const = default;
};

using Observe = std::function<void(const Trial&)>;

// a + b E + c E T bytes of one worker, E being the whole job's replicas.
struct MemoryLine {
  double fixed = 0.0, per_replica = 0.0, per_replica_step = 0.0;

  bool operator==(const MemoryLine&) const = default;
};

enum class Status {
  kChosen,
  kNothingFits,  // nor does the smallest setting
  kFailed,       // a probe failed for a reason that a smaller setting does not mend
};

struct SearchResult {
  Status status = Status::kNothingFits;
  Probe start;                   // as configured, within the limits
  Probe chosen;                  // where status is kChosen, as the next two
  double env_steps_per_s = 0.0;  // median of its probes
  std::uint64_t bytes = 0;       // its highest peak
  std::string reason;            // why each search ended; otherwise what went wrong
  bool at_max_batch = false;     // a search ended at Limits::max_batch: a larger one was not looked at
  MemoryLine memory;             // as measured
  std::vector<Trial> trials;     // in their order

  bool operator==(const SearchResult&) const = default;
};

// A search that a signal ended.
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
  bool refresh = false;           // search, whatever was found before
  scaling::Observe observe = {};  // told of each probe
};

struct Autoscaled {
  scaling::SearchResult result;
  bool cached = false;             // it was found before
  std::vector<Override> settings;  // for ConfigSources::overrides, behind all others
  std::vector<std::string> notes;  // what people should know
  std::string json, svg;           // autoscale.json and autoscale.svg, for the run's folder
};

// Finds trainer.num_envs and trainer.train_batch_size by short trainings with the settings in
// config.autoscale. Each of these probes runs in copies of this program: they do what main() does up to this
// call, make their probe, and end here. So call it in main(), before anything that starts a thread or touches
// CUDA, on the same path for the same command line. What was found is kept in $XDG_CACHE_HOME/wd/autoscale,
// else ~/.cache/wd/autoscale, for the next time that all is the same. Throws UsageError where nothing fits or
// the limits leave nothing to try, std::runtime_error where a probe failed for another reason than memory or
// time, scaling::Interrupted.
Autoscaled autoscale(const Config& config, Environment& environment, const AutoscaleOptions& options = {});

}  // namespace wd
