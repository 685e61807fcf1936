// continuous_mountain_car.cu: drive a car out of a valley with little fuel and an engine that is too weak to
// climb straight up. Gymnasium's MountainCarContinuous-v0.
//
// Gymnasium stores the state as float32 after each step, and computes with it in float32 too, except for the
// cosine and the reward. Here starts are float32 as well (tests/envs/continuous_mountain_car_oracle_test.py).
#include "mountain.h"

struct ContinuousMountainCar {
  static constexpr int kNumAgents = 1;

  struct Params : mountain::Track<float> {
    double power = 0.0015, gravity = 0.0025;
    int episode_length = 999;

    Params() { goal_position = 0.45f; }
    void describe(auto&& field) {
      Track::describe(field);
      field("power", power, {0.0, 1.0}, "acceleration by a force of 1 [1/step^2]");
      field("gravity", gravity, {0.0, 1.0}, "acceleration by the steepest slope [1/step^2]");
      field("episode_length", episode_length, {1, 1e6}, "steps after which the episode is truncated");
    }
  };

  enum Purpose { kPosition };  // what each random draw is for

  using State = mountain::Car<float>;

  static wd::Spec spec(const Params& p) {
    return {.roles = {{.name = "car",
                       .observation = {{"position"}, {"velocity"}},
                       .action = wd::ActionSpace::box(1, -1.0f, 1.0f, {"force"})}},
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
      const float action = a.continuous(0, 0);
      const bool arrived = s.move(p, push(p, action, s.slope[0]));
      const double drawn = static_cast<double>(action);  // the cost has no bounds
      out.reward(0) = static_cast<float>((arrived ? 100.0 : 0.0) - drawn * drawn * 0.1);
      if (arrived) out.terminate();
    });
  }

  WD_FN static void observe(auto& team, const Params&, const State& s, wd::Observations obs) {
    team.once([=] {
      obs(0, 0) = s.position[0];
      obs(0, 1) = s.velocity[0];
    });
  }

 private:
  // The change of velocity. A clipped force is a number of Python's, with which numpy computes in double.
  WD_FN static float push(const Params& p, float action, double slope) {
    const double fall = p.gravity * slope;
    if (action < -1.0f) return static_cast<float>(-p.power - fall);
    if (action > 1.0f) return static_cast<float>(p.power - fall);
    return action * static_cast<float>(p.power) - static_cast<float>(fall);
  }
};
