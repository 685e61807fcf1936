// trainer.h: the training loop: rollout, returns, update, over and over, and when to stop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "wd/config.h"
#include "wd/environment.h"
#include "wd/metrics.h"
#include "wd/policy.h"
#include "wd/replicas.h"
#include "wd/run.h"
#include "wd/trajectory.h"

namespace wd {

// The replicas that a configuration asks for. Throws UsageError when its file of starts cannot be read.
ReplicasOptions replicas_options(const Config& config, Device device);

class Trainer {
 public:
  // Allocates everything that training needs. Environment and row must outlive the trainer. Throws UsageError where
  // configuration and environment contradict each other.
  Trainer(const Config& config, const EnvironmentRow& row, const Environment& environment, Device device);
  ~Trainer();

  // One rollout and the update of every policy. False when `give_up`, asked at every step and chunk, said yes: the iteration
  // then counts nothing, and optimizer steps that it had already made stay.
  bool iterate(const std::function<bool()>& give_up = {});

  // The rollout alone, for measurements.
  void rollout();

  const StepCounts& counts() const;
  Trajectory& trajectory();
  Replicas& replicas();
  std::vector<Policy>& policies();

  // Mean episodic return of a policy over the last 100 episodes; NaN before the first has ended.
  double mean_return(std::size_t policy) const;
  // Whether stop_return is reached: the first policy's mean over 100 episodes.
  bool return_reached() const;
  // Everything measured since the last call. Synchronises on CUDA.
  MetricsRow take_metrics();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Trains to the end that the configuration sets, or until `interrupted`, asked at every step and chunk, says yes; writes the run's
// files. Returns why it stopped: "total_steps", "max_seconds", "stop_return", "signal".
std::string train(const Config& config, Trainer& trainer, Run& run, const std::function<bool()>& interrupted = {});

}  // namespace wd
