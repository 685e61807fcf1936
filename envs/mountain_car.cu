// mountain_car.cu: drive a car out of a valley with an engine that is too weak to climb straight up.
// Gymnasium's MountainCar-v0.
//
// The state is double and operations follow Gymnasium's order (tests/envs/mountain_car_oracle_test.py).
#include "mountain.h"

struct MountainCar {
  static constexpr int kNumAgents = 1;

  struct Params : mountain::Track<double> {
    double force = 0.001, gravity = 0.0025;
    int episode_length = 200;

    void describe(auto&& field) {
      Track::describe(field);
      field("force", force, {0.0, 1.0}, "acceleration by the engine [1/step^2]");
      field("gravity", gravity, {0.0, 1.0}, "acceleration by the steepest slope [1/step^2]");
      field("episode_length", episode_length, {1, 1e6}, "steps after which the episode is truncated");
    }
  };

  enum Purpose { kPosition };  // what each random draw is for

  using State = mountain::Car<double>;

  static wd::Spec spec(const Params& p) {
    return {.roles = {{.name = "car",
                       .observation = {{"position"}, {"velocity"}},
                       .action = wd::ActionSpace::discrete({3}, {"push"})}},
            .time_limit = p.episode_length,
            .drawing = p.drawing()};
  }

  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random random) {
    team.once([=, &s] { s.start(random.uniform_double(0, kPosition)); });
  }

  WD_FN static void derive(auto& team, const Params&, State& s) {
    team.once([=, &s] { s.follow_ground(); });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.once([=, &s, &out] {
      const double push = static_cast<double>(a.discrete(0, 0) - 1);
      if (s.move(p, push * p.force + s.slope[0] * -p.gravity)) out.terminate();
      out.reward(0) = -1.0f;
    });
  }

  WD_FN static void observe(auto& team, const Params&, const State& s, wd::Observations obs) {
    team.once([=] {
      obs(0, 0) = static_cast<float>(s.position[0]);
      obs(0, 1) = static_cast<float>(s.velocity[0]);
    });
  }
};
