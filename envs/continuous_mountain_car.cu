// continuous_mountain_car.cu: drive a car out of a valley with little fuel and an engine that is too weak to
// climb straight up. Gymnasium's MountainCarContinuous-v0.
//
// Moore, "Efficient memory-based learning for robot control", 1990. Gymnasium stores the state as float32
// after each step, and computes with it in float32 too, except for the cosine and the reward. Here starts are
// float32 as well (tests/envs/continuous_mountain_car_oracle_test.py).
#include <wd/env.h>

struct ContinuousMountainCar {
  static constexpr int kNumAgents = 1;

  struct Params {
    float min_position = -1.2f, max_position = 0.6f, max_speed = 0.07f, goal_position = 0.45f;
    float goal_velocity = 0.0f;
    double power = 0.0015, gravity = 0.0025;
    int episode_length = 999;

    void describe(auto&& field) {
      field("min_position", min_position, {-1e3, -0.6}, "left end of the track, a wall");
      field("max_position", max_position, {-0.4, 1e3}, "right end of the track");
      field("max_speed", max_speed, wd::above(0.0, 1.0), "maximum speed [1/step]");
      field("goal_position", goal_position, {-0.4, 1e3}, "the episode ends from this position on");
      field("goal_velocity", goal_velocity, {-1.0, 1.0}, "with at least this velocity [1/step]");
      field("power", power, {0.0, 1.0}, "acceleration by a force of 1 [1/step^2]");
      field("gravity", gravity, {0.0, 1.0}, "acceleration by the steepest slope [1/step^2]");
      field("episode_length", episode_length, {1, 1e6}, "steps after which the episode is truncated");
    }
  };

  enum Purpose { kPosition };  // what each random draw is for

  // The height of the ground and its slope, as Gymnasium draws them, follow from the position.
  struct State {
    wd::PerAgent<float> position, velocity;  // [1], [1/step]
    wd::PerAgent<double> height, slope;      // 0.45 sin(3 position) + 0.55, cos(3 position)
    void describe(auto&& field) {
      field("position", position), field("velocity", velocity), field("height", height),
          field("slope", slope);
    }
  };

  static wd::Spec spec(const Params& p) {
    return {.roles = {{.name = "car",
                       .observation = {{"position"}, {"velocity"}},
                       .action = wd::ActionSpace::box(1, -1.0f, 1.0f, {"force"})}},
            .time_limit = p.episode_length,
            .drawing = {.left = static_cast<double>(p.min_position),
                        .bottom = 0.0,
                        .right = static_cast<double>(p.max_position),
                        .top = 1.3,
                        .shapes = shapes(p)}};
  }

  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random random) {
    team.once([=, &s] {
      s.position[0] = static_cast<float>(-0.6 + (-0.4 - -0.6) * random.uniform_double(0, kPosition));
      s.velocity[0] = 0.0f;
      follow_ground(s);
    });
  }

  WD_FN static void derive(auto& team, const Params&, State& s) {
    team.once([=, &s] { follow_ground(s); });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.once([=, &s, &out] {
      const float action = a.continuous(0, 0);
      s.velocity[0] = wd::clamp(s.velocity[0] + push(p, action, s.slope[0]), -p.max_speed, p.max_speed);
      s.position[0] = wd::clamp(s.position[0] + s.velocity[0], p.min_position, p.max_position);
      if (s.position[0] == p.min_position && s.velocity[0] < 0.0f) s.velocity[0] = 0.0f;
      follow_ground(s);
      const bool arrived = s.position[0] >= p.goal_position && s.velocity[0] >= p.goal_velocity;
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

  // Three times the position is rounded to float32.
  WD_FN static void follow_ground(State& s) {
    const auto [sine, cosine] = wd::sincos(static_cast<double>(3.0f * s.position[0]));
    s.height[0] = 0.45 * sine + 0.55;
    s.slope[0] = cosine;
  }

  static std::vector<wd::drawing::Shape> shapes(const Params& p) {
    const auto height = [](double position) { return 0.45 * wd::sin(3.0 * position) + 0.55; };
    const double goal = static_cast<double>(p.goal_position), foot = height(goal);
    std::vector<wd::drawing::Shape> all =
        wd::drawing::curve(height, static_cast<double>(p.min_position), static_cast<double>(p.max_position));
    all.push_back(wd::drawing::line(goal, foot, 0.2, 0.5 * wd::kPiDouble));
    all.push_back(wd::drawing::rectangle(goal + 0.035, foot + 0.18, 0.07, 0.04));
    all.push_back(wd::drawing::rectangle("position", {"height", 1.0, 0.05}, 0.12, 0.06, "slope"));
    return all;
  }
};
