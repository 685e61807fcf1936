// train.h: the training loop, with the files that a run leaves, and when it stops.
#pragma once

#include <functional>
#include <string>

#include "src/run/run.h"
#include "src/worker/fault.h"
#include "wd/checkpoint.h"
#include "wd/trainer.h"

namespace wd {

// Why training with this configuration has come to its end: "total_steps", "stop_return"; empty where it has
// not.
std::string finished(const Config& config, const Trainer& trainer);

struct TrainOptions {
  const Config& config;
  std::function<int()> interrupted =
      {};            // asked after every iteration: not 0, a signal, ends training in good order
  Fault fault = {};  // for tests
  bool strict_device =
      false;  // fail on any allocation, copy or wait of the loop once it is warm (docs/architecture.md)
  // Iterations to profile, after two that warm up; 0: none. Rank 0 profiles itself; table (for people) and
  // JSON are handed over once.
  int profile = 0;
  std::function<void(const std::string& table, const std::string& json)> profiled = {};
};

struct TrainEnd {
  std::string reason;  // "total_steps", "max_seconds", "stop_return", "signal"
  int signal = 0;      // that any rank received
};

// Trains to the end that the configuration sets, or until `interrupted`; writes the run's files, and a
// checkpoint at the start, every saving.checkpoint_freq iterations and at the end. trainer.max_seconds,
// counted from this call, is looked at in every step and chunk; the iteration that it cuts short does not
// count. All ranks, which end at the same iteration; run and checkpoints are rank 0's, null elsewhere.
TrainEnd train(const TrainOptions& options, Trainer& trainer, Run* run, Checkpoints* checkpoints);

}  // namespace wd
