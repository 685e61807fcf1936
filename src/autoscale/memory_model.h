// memory_model.h: predicts the bytes that a probe needs as a + b E + c E T, corrected by measurements.
#pragma once

#include <vector>

#include "wd/autoscale.h"

namespace wd::scaling {

class MemoryModel {
 public:
  // `sizes` describes the buffers of one worker, which hold that worker's share of the replicas.
  MemoryModel(const Sizes& sizes, int num_workers);

  // Adds a probe that fitted, with the peak memory of its fullest worker.
  void add(const Probe& probe, std::uint64_t bytes);

  // Returns the most likely value for display, or 0 if there are no measurements yet. Saturates.
  std::uint64_t predict(const Probe& probe) const;
  // Returns a lower bound. If it exceeds the budget, the probe cannot fit.
  std::uint64_t at_least(const Probe& probe) const;
  MemoryLine line() const;

 private:
  struct Point {
    Probe probe;
    double exact, measured;  // [bytes] computed from the sizes, measured in the process
  };
  struct Fit {
    double offset, scale;  // measured = offset + scale * exact
  };
  double exact(const Probe& probe) const;
  Fit fit() const;
  double growth(const Probe& probe) const;

  Sizes sizes_;
  double workers_;
  std::vector<Point> points_;
};

}  // namespace wd::scaling
