// memory_model.h: bytes that a probe will need: a + b E + c E T, corrected by what was measured.
#pragma once

#include <vector>

#include "wd/autoscale.h"

namespace wd::scaling {

class MemoryModel {
 public:
  // Sizes are of one worker's buffers, which hold their share of the replicas.
  MemoryModel(const Sizes& sizes, int num_workers);

  // A probe that fitted, and the peak of its fullest worker.
  void add(const Probe& probe, std::uint64_t bytes);

  // The likeliest, for people; 0 before anything was measured. Saturates.
  std::uint64_t predict(const Probe& probe) const;
  // What it needs at the very least: where this exceeds the budget, there is no hope.
  std::uint64_t at_least(const Probe& probe) const;
  MemoryLine line() const;

 private:
  struct Point {
    Probe probe;
    double exact, measured;  // [bytes] by the sizes, by the process
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
