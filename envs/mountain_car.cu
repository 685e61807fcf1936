// mountain_car.cu: drive a car out of a valley with an engine that is too weak to climb straight up.
// Gymnasium's MountainCar-v0.
//
// Moore, "Efficient memory-based learning for robot control", 1990. The state is double and operations follow
// Gymnasium's order (tests/envs/mountain_car_oracle_test.py).
#include <wd/env.h>

struct MountainCar {
  static constexpr int kNumAgents = 1;

  struct Params {
    double min_position = -1.2, max_position = 0.6, max_speed = 0.07, goal_position = 0.5,
           goal_velocity = 0.0;
    double force = 0.001, gravity = 0.0025;
    int episode_length = 200;

    void describe(auto&& field) {
      field("min_position", min_position, {-1e3, -0.6}, "left end of the track, a wall");
      field("max_position", max_position, {-0.4, 1e3}, "right end of the track");
      field("max_speed", max_speed, wd::above(0.0, 1.0), "maximum speed [1/step]");
      field("goal_position", goal_position, {-0.4, 1e3}, "the episode ends from this position on");
      field("goal_velocity", goal_velocity, {-1.0, 1.0}, "with at least this velocity [1/step]");
      field("force", force, {0.0, 1.0}, "acceleration by the engine [1/step^2]");
      field("gravity", gravity, {0.0, 1.0}, "acceleration by the steepest slope [1/step^2]");
      field("episode_length", episode_length, {1, 1e6}, "steps after which the episode is truncated");
    }
  };

  enum Purpose { kPosition };  // what each random draw is for

  // The height of the ground and its slope, as Gymnasium draws them, follow from the position.
  struct State {
    wd::PerAgent<double> position, velocity;  // [1], [1/step]
    wd::PerAgent<double> height, slope;       // 0.45 sin(3 position) + 0.55, cos(3 position)
    void describe(auto&& field) {
      field("position", position), field("velocity", velocity), field("height", height),
          field("slope", slope);
    }
  };

  static wd::Spec spec(const Params& p) {
    return {
        .roles = {{.name = "car",
                   .observation = {{"position"}, {"velocity"}},
                   .action = wd::ActionSpace::discrete({3}, {"push"})}},
        .time_limit = p.episode_length,
        .drawing = {
            .left = p.min_position, .bottom = 0.0, .right = p.max_position, .top = 1.3, .shapes = shapes(p)}};
  }

  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random random) {
    team.once([=, &s] {
      s.position[0] = -0.6 + (-0.4 - -0.6) * random.uniform_double(0, kPosition);
      s.velocity[0] = 0.0;
      follow_ground(s);
    });
  }

  WD_FN static void derive(auto& team, const Params&, State& s) {
    team.once([=, &s] { follow_ground(s); });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.once([=, &s, &out] {
      const double push = static_cast<double>(a.discrete(0, 0) - 1);
      const double velocity = s.velocity[0] + (push * p.force + s.slope[0] * -p.gravity);
      s.velocity[0] = wd::clamp(velocity, -p.max_speed, p.max_speed);
      s.position[0] = wd::clamp(s.position[0] + s.velocity[0], p.min_position, p.max_position);
      if (s.position[0] == p.min_position && s.velocity[0] < 0.0) s.velocity[0] = 0.0;
      follow_ground(s);
      out.reward(0) = -1.0f;
      if (s.position[0] >= p.goal_position && s.velocity[0] >= p.goal_velocity) out.terminate();
    });
  }

  WD_FN static void observe(auto& team, const Params&, const State& s, wd::Observations obs) {
    team.once([=] {
      obs(0, 0) = static_cast<float>(s.position[0]);
      obs(0, 1) = static_cast<float>(s.velocity[0]);
    });
  }

 private:
  WD_FN static void follow_ground(State& s) {
    const auto [sine, cosine] = wd::sincos(3.0 * s.position[0]);
    s.height[0] = 0.45 * sine + 0.55;
    s.slope[0] = cosine;
  }

  static std::vector<wd::drawing::Shape> shapes(const Params& p) {
    const auto height = [](double position) { return 0.45 * wd::sin(3.0 * position) + 0.55; };
    std::vector<wd::drawing::Shape> all = wd::drawing::curve(height, p.min_position, p.max_position);
    const double foot = height(p.goal_position);
    all.push_back(wd::drawing::line(p.goal_position, foot, 0.2, 0.5 * wd::kPiDouble));
    all.push_back(wd::drawing::rectangle(p.goal_position + 0.035, foot + 0.18, 0.07, 0.04));
    all.push_back(wd::drawing::rectangle("position", {"height", 1.0, 0.05}, 0.12, 0.06, "slope"));
    return all;
  }
};
