// train.h: the training loop, the files that it writes, and when it stops.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "src/run/run.h"
#include "src/trainer/evidence.h"
#include "src/trainer/judge.h"
#include "src/worker/fault.h"
#include "wd/checkpoint.h"
#include "wd/trainer.h"

namespace wd {

// Returns why training with this configuration has reached its end: "total_steps", "stop_return"; empty if it
// has not.
std::string finished(const Config& config, const Trainer& trainer);

// What an evaluation found.
struct Evaluation {
  std::vector<std::pair<std::string, double>> values;  // metrics
  double judged_return = 0.0;                          // for trainer.stop_on: eval
};

struct TrainOptions {
  const Config& config;
  // Called after every iteration. A result other than 0 is a signal, and ends training in good order.
  std::function<int()> interrupted = {};
  // Evaluates the policies as they are. Called on rank 0 every config.eval.every iterations.
  std::function<Evaluation()> evaluate = {};
  // Plays so many fresh episodes with the policies as they are, of which `first` were played before: on rank
  // 0, where a checkpoint may be the best. Empty: none can be played.
  PlayFresh play_fresh = {};
  // Records episodes of the policies as they are. Called on rank 0 every config.play.every iterations.
  std::function<void(std::int64_t iteration)> record = {};
  // Shows what a replica of this rank did before it returned a number that is not finite. Called on any rank,
  // before train() throws.
  std::function<void(const Evidence& evidence)> show = {};
  Fault fault = {};  // for tests
  // Fail on any allocation, copy or wait of the loop after warm-up (docs/architecture.md).
  bool strict_device = false;
  // Iterations to profile, after two of warm-up; 0: none. Rank 0 profiles itself and calls `profiled` once
  // with the table (for users) and the JSON.
  int profile = 0;
  std::function<void(const std::string& table, const std::string& json)> profiled = {};
  // Limit on the time [s] that a rank that has failed takes to leave the others; then the process ends with
  // _exit(1).
  double abort_seconds = 30.0;
};

struct TrainEnd {
  std::string reason;  // "total_steps", "max_seconds", "stop_return", "signal"
  int signal = 0;      // the signal that a rank received
};

// Trains to the end that the configuration sets, or until `interrupted`. Writes the run's files, and a
// checkpoint at the start, every saving.checkpoint_freq iterations and at the end. trainer.max_seconds,
// counted from this call, is checked in every step and chunk, and the iteration that it interrupts does not
// count; on a GPU it is checked between iterations. All ranks; they end at the same iteration. run and
// checkpoints are rank 0's, and null elsewhere.
TrainEnd train(const TrainOptions& options, Trainer& trainer, Run* run, Checkpoints* checkpoints);

}  // namespace wd
