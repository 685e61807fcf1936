// workloads.h: the three workloads that `wdtrain bench` measures.
#pragma once

#include "src/bench/result.h"
#include "wd/config.h"
#include "wd/environment.h"

namespace wd::bench {

struct Setting {
  const Config& config;
  const Environment& environment;
  Device device;
  double seconds = 5.0;
};

// Plays random legal actions in every step, into a buffer of `steps` steps. With 0, the buffer is large
// enough that its memory has left the last-level cache before it is written again. A round fills the buffer
// once; times are per step.
Result bench_environment(const Setting& setting, int num_envs, int steps);
// Runs rollouts with inference; a round is one rollout.
Result bench_act(const Setting& setting);
// Runs whole iterations; a round is one iteration.
Result bench_train(const Setting& setting);

}  // namespace wd::bench
