// played.h: an environment and a rollout of it with random actions.
#pragma once

#include "src/replicas/random_play.h"
#include "wd/replicas.h"
#include "wd/trajectory.h"

namespace wd {

// The actions are the same for every storage of observations.
struct Played {
  Replicas replicas;
  Trajectory trajectory;

  static RolloutShape shape_of(const Spec& spec, int steps, int num_envs, ObservationStorage storage) {
    RolloutShape shape = RolloutShape::of_roles(spec, num_envs, {}, storage);
    shape.steps = steps;
    return shape;
  }

  Played(const Environment& environment, int steps, int num_envs, ObservationStorage storage)
      : replicas(environment, {.num_envs = num_envs, .seed = 11}),
        trajectory(shape_of(environment.spec(), steps, num_envs, storage)) {
    replicas.step(trajectory.first_rows());
    for (int t = 0; t < steps; ++t) {
      for (std::size_t p = 0; p < trajectory.policies().size(); ++p) {
        const RandomPlay play{
            .seed = 3, .policy = static_cast<std::uint32_t>(p), .step = static_cast<std::uint64_t>(t)};
        play_at_random({}, trajectory.policies()[p], t, t, play);
      }
      replicas.step(trajectory.rows(t));
    }
  }
};

}  // namespace wd
