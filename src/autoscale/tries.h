// tries.h: the probes of a search: runs them, keeps them, and says when there may be no more.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/autoscale/memory_model.h"
#include "wd/autoscale.h"

namespace wd::scaling {

// Of at least one value.
double median(std::vector<double> values);

class Tries {
 public:
  Tries(const SearchOptions& options, const Measure& measure, const Observe& observe);

  // The next stage, which looks at numbers that differ by a factor of at most `range`.
  void begin(Stage stage, double range);
  int left() const { return most_ - made_; }  // probes of this stage

  // Runs a probe, or skips it where the memory model leaves no hope. None: the search must end, or this
  // stage.
  std::optional<Outcome> run(const Probe& probe);
  // What is known of it already, else what run() says.
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
  Outcome measured(const Probe& probe, double max_seconds) const;
  void tell(const Probe& probe, const Outcome& outcome, std::uint64_t predicted);
  void keep(const Probe& probe, const Outcome& outcome, std::uint64_t predicted);

  const SearchOptions& options_;
  const Measure& measure_;
  const Observe& observe_;
  MemoryModel model_;
  Stage stage_ = Stage::kReplicas;
  int most_ = 0, made_ = 0;
  double seconds_ = 0.0;
  bool failed_ = false;
  std::map<Probe, Known> known_;
  std::vector<Try> list_;
};

}  // namespace wd::scaling
