// tries.h: the probes of a search: runs them, keeps them, and says when there may be no more.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/autoscale/memory_model.h"
#include "src/base/median.h"
#include "wd/autoscale.h"

namespace wd::scaling {

class Tries {
 public:
  Tries(const SearchOptions& options, const Measure& measure, const Observe& observe);

  // The next stage, which looks at numbers that differ by a factor of at most `range`, and ends when `part`
  // of the time of all stages is over.
  void begin(Stage stage, double range, double part = 1.0);
  int left() const { return most_ - made_; }  // probes of this stage

  // Runs a probe, or skips it where the memory model leaves no hope; beside a second setting that has fitted,
  // unless memory does not hold both: then the outcome has no ratios. None: the search must end, or this
  // stage.
  std::optional<Outcome> run(const Probe& probe, const std::optional<Probe>& beside = {});
  // What is known of it already, else what run() says, beside the first that fitted.
  std::optional<Kind> look(const Probe& probe);

  // Whether it was run, and fitted each time.
  bool fits(const Probe& probe) const;
  bool is_misfit(const Probe& probe) const;       // it was run or skipped, and once did not fit
  double rate(const Probe& probe) const;          // median of its env_steps_per_s; 0 where it does not fit
  std::uint64_t bytes(const Probe& probe) const;  // its highest peak
  std::vector<Probe> fitting() const;             // in order of replicas, then steps

  bool failed() const { return failed_; }
  bool out_of_time() const;
  const std::vector<Try>& list() const { return list_; }
  const MemoryModel& model() const { return model_; }

 private:
  struct Known {
    std::vector<double> rates;
    std::uint64_t bytes = 0;
    std::optional<Kind> misfit;  // the last outcome that was none that fits
  };
  double seconds_left() const;  // 0: no limit
  std::uint64_t together(const Probe& probe, const Probe& beside) const;
  Outcome measured(const Probe& probe, const std::optional<Probe>& beside, double max_seconds) const;
  void tell(const Try& one);
  void keep(const Try& one);

  const SearchOptions& options_;
  const Measure& measure_;
  const Observe& observe_;
  MemoryModel model_;
  Stage stage_ = Stage::kReplicas;
  int most_ = 0, made_ = 0;
  double seconds_ = 0.0, part_ = 1.0;
  bool failed_ = false;
  std::map<Probe, Known> known_;
  std::optional<Probe> first_;   // that fitted: what later ones are measured beside
  std::uint64_t most_together_;  // no two settings that need so many bytes share a process
  std::vector<Try> list_;
};

}  // namespace wd::scaling
