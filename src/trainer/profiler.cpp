// profiler.cpp: collects phases from the trainer's timeline, operations from scopes, and kernels from CUPTI.
#include "src/trainer/profiler.h"

#include "src/device/device.h"
#include "wd/detail/parallel.h"

namespace wd {

void Profiler::before(Trainer& trainer) {
  if (running_ || wanted_ == 0 || seen_ != kWarmUp) return;
  const Device device = trainer.replicas().device();
  synchronize(device);
  counts_ = trainer.counts();
  running_ = true;
  if (device.is_cuda()) {
    tracer_.emplace();
  } else {
    profile::start();
  }
  // The tracer takes seconds to start, which belong to no phase. Both clocks start after it, the host's first
  // and the phases' last, so that phases sum to at most the seconds.
  watch_ = Stopwatch();
  phases_ = trainer.phase_seconds();
}

std::optional<ProfileReport> Profiler::after(Trainer& trainer) {
  ++seen_;
  if (!running_ || seen_ < kWarmUp + wanted_) return {};
  return report(trainer);
}

std::optional<ProfileReport> Profiler::end(Trainer& trainer) {
  if (!running_) return {};
  return report(trainer);
}

ProfileReport Profiler::report(Trainer& trainer) {
  const Device device = trainer.replicas().device();
  synchronize(device);
  ProfileReport report;
  report.phases = trainer.phase_seconds();
  report.seconds = watch_.seconds();
  if (tracer_) {
    report.kernels = tracer_->stop();
    tracer_.reset();
  } else {
    report.operations = profile::stop();
    report.threads = num_threads();
  }
  running_ = false;
  wanted_ = 0;
  for (std::size_t k = 0; k < report.phases.size(); ++k) report.phases[k] -= phases_[k];
  report.device = device.is_cuda() ? "cuda" : "cpu";
  report.device_name = describe(device);
  report.iterations = static_cast<int>(trainer.counts().iteration - counts_.iteration);
  report.env_steps = trainer.counts().env_steps - counts_.env_steps;
  report.steps = std::int64_t{report.iterations} * trainer.trajectory().steps();
  return report;
}

}  // namespace wd
