// memory_model.cpp: a linear fit of the measurements for display, and a conservative lower bound for
// decisions.
#include "src/autoscale/memory_model.h"

#include <algorithm>
#include <cmath>

namespace wd::scaling {
namespace {

// Two measurements of the same size differ by a few percent because allocators round and start-up has its own
// peaks.
constexpr double kTrust = 0.95;
// The slope between two close sizes shows rounding, not growth.
constexpr double kMinSpan = 1.5;
constexpr double kSlopeTrust = 0.9;

std::uint64_t saturate(double bytes) {
  constexpr double kMax = 0x1p53;  // exactly representable in JSON
  return static_cast<std::uint64_t>(std::clamp(bytes, 0.0, kMax));
}

// Returns whether all three share T or all three share E: then the slope between two of them applies to the
// third.
bool on_one_line(const Probe& a, const Probe& b, const Probe& c) {
  return (a.rollout_steps == b.rollout_steps && b.rollout_steps == c.rollout_steps) ||
         (a.num_envs == b.num_envs && b.num_envs == c.num_envs);
}

}  // namespace

MemoryModel::MemoryModel(const Sizes& sizes, int num_workers) : sizes_(sizes), workers_(num_workers) {}

double MemoryModel::exact(const Probe& probe) const {
  const double replicas = static_cast<double>(probe.num_envs) / workers_;
  const auto steps = static_cast<double>(probe.rollout_steps);
  const double bytes = sizes_.fixed + replicas * (sizes_.per_replica + sizes_.per_replica_step * steps);
  const double with_kept = bytes + replicas * sizes_.kept_per_replica_step * steps;
  return with_kept <= sizes_.room_with_kept ? with_kept : bytes;
}

void MemoryModel::add(const Probe& probe, std::uint64_t bytes) {
  points_.push_back({probe, exact(probe), static_cast<double>(bytes)});
}

// Least squares. With one measurement, or several of the same size, the scale stays 1.
MemoryModel::Fit MemoryModel::fit() const {
  if (points_.empty()) return {0.0, 1.0};
  const auto n = static_cast<double>(points_.size());
  double x = 0.0, y = 0.0, xx = 0.0, xy = 0.0;
  for (const Point& point : points_) x += point.exact / n, y += point.measured / n;
  for (const Point& point : points_) {
    xx += (point.exact - x) * (point.exact - x);
    xy += (point.exact - x) * (point.measured - y);
  }
  const double scale = xx > 0.0 && xy > 0.0 ? xy / xx : 1.0;
  return {y - scale * x, scale};
}

std::uint64_t MemoryModel::predict(const Probe& probe) const {
  if (points_.empty()) return 0;
  const Fit fitted = fit();
  return saturate(fitted.offset + fitted.scale * exact(probe));
}

// Bytes that the process grows by per byte of our buffers, from the pair of measurements on the probe's line
// that is farthest apart.
double MemoryModel::growth(const Probe& probe) const {
  double widest = kMinSpan, slope = 1.0;
  for (const Point& a : points_) {
    for (const Point& b : points_) {
      if (b.exact < widest * a.exact || b.exact <= a.exact || !on_one_line(a.probe, b.probe, probe)) continue;
      widest = b.exact / std::max(a.exact, 1.0);
      slope = std::max(1.0, kSlopeTrust * (b.measured - a.measured) / (b.exact - a.exact));
    }
  }
  return slope;
}

std::uint64_t MemoryModel::at_least(const Probe& probe) const {
  const double needed = exact(probe), slope = growth(probe);
  double least = needed;
  for (const Point& point : points_) {
    const bool smaller =
        point.probe.num_envs <= probe.num_envs && point.probe.rollout_steps <= probe.rollout_steps;
    if (smaller) least = std::max(least, kTrust * point.measured + slope * (needed - point.exact));
  }
  return saturate(least);
}

MemoryLine MemoryModel::line() const {
  const Fit fitted = fit();
  return {fitted.offset + fitted.scale * sizes_.fixed, fitted.scale * sizes_.per_replica / workers_,
          fitted.scale * sizes_.per_replica_step / workers_};
}

}  // namespace wd::scaling
