// trials.h: runs the probes of a search, records them, compares two settings, and decides when no more probes
// are allowed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/autoscale/memory_model.h"
#include "src/base/median.h"
#include "wd/autoscale.h"

namespace wd::scaling {

// Gains below this are ignored throughout: the minimum gain of a doubling, the precision of a bisection, and
// the maximum loss of the smallest setting against the fastest.
inline constexpr double kMinGain = 0.02;

class Trials {
 public:
  Trials(const SearchOptions& options, const Measure& measure, const Observe& observe);

  // Begins the next stage. It tries numbers that differ by a factor of at most `range`, makes at most 2
  // log2(range) + 4 probes, and ends when `part` of the time for all stages is used up.
  void begin(Stage stage, double range, double part = 1.0);
  int left() const { return max_ - made_; }  // remaining probes of this stage

  // Runs a probe, or skips it if the memory model rules it out. With a reference that has fitted, the two
  // settings take turns in one process, unless memory cannot hold both: then the outcome has no ratios.
  // Returns none if the search or this stage must end.
  std::optional<ProbeEnd> run(const Probe& probe, const std::optional<Probe>& reference = {});
  // Returns the recorded kind if there is one. Otherwise runs the probe in turns with the first setting that
  // fitted.
  std::optional<Kind> look(const Probe& probe);

  // Returns kFits if the setting fitted each time, and otherwise the kind of its last misfit. Returns none if
  // it was not tried.
  std::optional<Kind> known(const Probe& probe) const;
  bool fits(const Probe& probe) const { return known(probe) == Kind::kFits; }
  double rate(const Probe& probe) const;          // median of its env_steps_per_s; 0 if it does not fit
  std::uint64_t bytes(const Probe& probe) const;  // its maximum peak
  std::vector<Probe> fitting() const;             // sorted by replicas, then by steps

  bool failed() const { return !list_.empty() && list_.back().outcome.kind == Kind::kFailed; }
  bool out_of_time() const;
  bool for_speed() const { return options_.objective == Objective::kSpeed; }
  const SearchOptions& options() const { return options_; }
  const std::vector<Trial>& list() const { return list_; }
  const MemoryModel& model() const { return model_; }

 private:
  std::uint64_t together(const Probe& probe, const Probe& reference) const;
  ProbeEnd measured(const Trial& one, double max_seconds) const;
  void tell(const Trial& one);

  const SearchOptions& options_;
  const Measure& measure_;
  const Observe& observe_;
  MemoryModel model_;
  Stage stage_ = Stage::kReplicas;
  int max_ = 0, made_ = 0;
  double seconds_ = 0.0, part_ = 1.0;
  std::uint64_t max_together_;  // two settings that need this many bytes together do not share a process
  std::vector<Trial> list_;
};

inline constexpr int kMinRatios = 3;

enum class Verdict {
  kYes,
  kNo,
  kOpen,  // the pairs disagree, or there are too few of them
};

// Tests whether the median of the ratios is at least `threshold`, by its 80 % confidence interval (order
// statistics with the normal approximation of the binomial distribution: Conover, Practical Nonparametric
// Statistics, 3.2). The interval spans all of three or four ratios, and excludes the lowest and the highest
// of five.
Verdict verdict(std::span<const double> ratios, double threshold);

struct Comparison {
  Verdict verdict = Verdict::kOpen;
  double median = 0.0;   // of speed(a) / speed(b); 0 if nothing was measured
  bool complete = true;  // false if the search or the stage ran out of probes
};

// Runs a and b in turns, in one process if memory holds both, until it is clear whether a reaches `threshold`
// times the speed of b. A single timing is noisier than the difference that matters. If a setting does not
// fit this time, the verdict is kNo, and Trials knows which setting it was.
Comparison compare(Trials& trials, const Probe& a, const Probe& b, double threshold);

}  // namespace wd::scaling
