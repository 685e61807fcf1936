// trials.h: the probes of a search: runs them, keeps them, compares two settings, and says when there may be
// no more.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/autoscale/memory_model.h"
#include "src/base/median.h"
#include "wd/autoscale.h"

namespace wd::scaling {

// Gains below this do not count, here and there: what a doubling must bring, how close a bisection comes, how
// much slower than the fastest the smallest may be.
inline constexpr double kMinGain = 0.02;

class Trials {
 public:
  Trials(const SearchOptions& options, const Measure& measure, const Observe& observe);

  // The next stage, which looks at numbers that differ by a factor of at most `range`, makes 2
  // log2(range) + 4 probes at most, and ends when `part` of the time of all stages is over.
  void begin(Stage stage, double range, double part = 1.0);
  int left() const { return max_ - made_; }  // probes of this stage

  // Runs a probe, or skips it where the memory model leaves no hope; in turns with a second setting that has
  // fitted, unless memory does not hold both: then the outcome has no ratios. None: the search must end, or
  // this stage.
  std::optional<Outcome> run(const Probe& probe, const std::optional<Probe>& reference = {});
  // What is known of it already, else what run() says, in turns with the first that fitted.
  std::optional<Kind> look(const Probe& probe);

  // What is known of it: kFits where it fitted each time, else how it last did not. None: it was not tried.
  std::optional<Kind> known(const Probe& probe) const;
  bool fits(const Probe& probe) const { return known(probe) == Kind::kFits; }
  double rate(const Probe& probe) const;          // median of its env_steps_per_s; 0 where it does not fit
  std::uint64_t bytes(const Probe& probe) const;  // its highest peak
  std::vector<Probe> fitting() const;             // in order of replicas, then steps

  bool failed() const { return !list_.empty() && list_.back().outcome.kind == Kind::kFailed; }
  bool out_of_time() const;
  bool for_speed() const { return options_.objective == Objective::kSpeed; }
  const SearchOptions& options() const { return options_; }
  const std::vector<Trial>& list() const { return list_; }
  const MemoryModel& model() const { return model_; }

 private:
  std::uint64_t together(const Probe& probe, const Probe& reference) const;
  Outcome measured(const Trial& one, double max_seconds) const;
  void tell(const Trial& one);

  const SearchOptions& options_;
  const Measure& measure_;
  const Observe& observe_;
  MemoryModel model_;
  Stage stage_ = Stage::kReplicas;
  int max_ = 0, made_ = 0;
  double seconds_ = 0.0, part_ = 1.0;
  std::uint64_t max_together_;  // no two settings that need so many bytes share a process
  std::vector<Trial> list_;
};

inline constexpr int kMinRatios = 3;

enum class Verdict {
  kYes,
  kNo,
  kOpen,  // the pairs disagree, or there are too few
};

// Whether the median of the ratios is at least `threshold`, by its interval of 80 % (order statistics, with
// the normal approximation of the binomial distribution: Conover, Practical Nonparametric Statistics, 3.2):
// over all of three or four ratios, without the lowest and the highest of five.
Verdict verdict(std::span<const double> ratios, double threshold);

struct Comparison {
  Verdict verdict = Verdict::kOpen;
  double median = 0.0;   // of speed(a) / speed(b); 0 where nothing was measured
  bool complete = true;  // false: the search or the stage ran out of probes
};

// Runs a and b in turns, in one process where memory holds both, until it is clear whether a has `threshold`
// times b's speed: one timing is noisier than the difference that matters. A setting that does not fit this
// time decides against a; Trials knows then which it was.
Comparison compare(Trials& trials, const Probe& a, const Probe& b, double threshold);

}  // namespace wd::scaling
