// trainer.h: the training loop: rollout, returns, update, over and over, and when to stop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "wd/checkpoint.h"
#include "wd/config.h"
#include "wd/environment.h"
#include "wd/fault.h"
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

  // One rollout and the update of every policy. False when `give_up`, asked at every step and chunk, said yes: all is then as it
  // was before the call. Throws std::runtime_error, before anything is learned from it, where a number is NaN or infinite.
  // `poison`, for tests: "observation", "reward", "loss", "gradient" or "weight" gets a NaN.
  bool iterate(const std::function<bool()>& give_up = {}, const std::string& poison = {});

  // Everything that the next iteration depends on, in host memory. Synchronises on CUDA.
  Snapshot snapshot() const;
  // Goes on from there: the same bits as if training had never stopped (on the CPU). Throws std::runtime_error where the snapshot
  // is of another training.
  void restore(const Snapshot& snapshot);

  // The rollout alone, for measurements.
  void rollout();

  const StepCounts& counts() const;
  double wall_s() const;  // since training began, sessions before a restore() included
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

// Why training with this configuration has come to its end: "total_steps", "stop_return"; empty where it has not.
std::string finished(const Config& config, const Trainer& trainer);

struct TrainOptions {
  const Config& config;
  std::function<bool()> interrupted = {};  // asked after every iteration: yes ends training in good order
  Fault fault = {};                        // for tests
};

// Trains to the end that the configuration sets, or until `interrupted`; writes the run's files, and a checkpoint at the start,
// every saving.checkpoint_freq iterations and at the end. trainer.max_seconds, counted from this call, is looked at in every step
// and chunk; the iteration that it cuts short does not count. Returns why it stopped: "total_steps", "max_seconds", "stop_return",
// "signal".
std::string train(const TrainOptions& options, Trainer& trainer, Run& run, Checkpoints& checkpoints);

}  // namespace wd
