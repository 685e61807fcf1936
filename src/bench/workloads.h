// workloads.h: the three things that `wdtrain bench` measures.
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

// Random legal actions in every step, into a buffer of `steps` steps; 0: as many as leave the last-level
// cache before their memory is written again. A round fills the buffer once; times are for a step.
Result bench_environment(const Setting& setting, int num_envs, int steps);
// Rollouts with inference; a round is one.
Result bench_act(const Setting& setting);
// Whole iterations; a round is one.
Result bench_train(const Setting& setting);

}  // namespace wd::bench
