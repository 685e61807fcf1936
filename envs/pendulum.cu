// pendulum.cu: swing a pendulum up and hold it upright with a weak motor. Gymnasium's Pendulum-v1.
//
// The state is double and operations follow Gymnasium's order. The torque is float32, like everything that
// Gymnasium computes from the torque alone (tests/envs/pendulum_oracle_test.py).
#include <wd/env.h>

struct Pendulum {
  static constexpr int kNumAgents = 1;

  struct Params {
    double gravity = 10.0, mass = 1.0, length = 1.0, dt = 0.05, max_speed = 8.0;
    float max_torque = 2.0f;
    int episode_length = 200;
    bool velocities = true;

    void describe(auto&& field) {
      field("gravity", gravity, {0.0, 1e3}, "acceleration of free fall [m/s^2]");
      field("mass", mass, wd::above(0.0, 1e6), "mass of the pendulum [kg]");
      field("length", length, wd::above(0.0, 1e3), "length of the pendulum [m]");
      field("dt", dt, wd::above(0.0, 1.0), "time of a step [s]");
      field("max_speed", max_speed, wd::above(0.0, 1e3), "maximum angular speed [rad/s]");
      field("max_torque", max_torque, wd::above(0.0, 1e6), "maximum torque [N m]");
      field("episode_length", episode_length, {1, 1e6}, "steps after which the episode is truncated");
      field("velocities", velocities, "observe the angular speed; without it, a policy needs a memory");
    }
  };

  enum Purpose { kTheta, kThetaDot };  // what each random draw is for

  struct State {
    wd::PerAgent<double> theta, theta_dot;  // [rad] from upright, not wrapped; [rad/s]
    void describe(auto&& field) { field("theta", theta), field("theta_dot", theta_dot); }
  };

  static wd::Spec spec(const Params& p) {
    using Parts = std::vector<wd::ObservationPart>;
    return {.roles = {{.name = "pendulum",
                       .observation = p.velocities ? Parts{{"cos_theta"}, {"sin_theta"}, {"theta_dot"}}
                                                   : Parts{{"cos_theta"}, {"sin_theta"}},
                       .action = wd::ActionSpace::box(1, -p.max_torque, p.max_torque, {"torque"})}},
            .time_limit = p.episode_length,
            .drawing = {.left = -1.2 * p.length,
                        .bottom = -1.2 * p.length,
                        .right = 1.2 * p.length,
                        .top = 1.2 * p.length,
                        .shapes = {wd::drawing::line(0.0, 0.0, p.length, {"theta", 1.0, 0.5 * wd::kPiDouble}),
                                   wd::drawing::circle(0.0, 0.0, 0.05 * p.length)}}};
  }

  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random random) {
    team.once([=, &s] {
      s.theta[0] = -wd::kPiDouble + 2.0 * wd::kPiDouble * random.uniform_double(0, kTheta);
      s.theta_dot[0] = -1.0 + 2.0 * random.uniform_double(0, kThetaDot);
    });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.once([=, &s, &out] {
      const double theta = s.theta[0], speed = s.theta_dot[0];
      const float torque = wd::clamp(a.continuous(0, 0), -p.max_torque, p.max_torque);
      const double angle = wd::wrap(theta + wd::kPiDouble, 2.0 * wd::kPiDouble) - wd::kPiDouble;
      const double cost =
          angle * angle + 0.1 * (speed * speed) + static_cast<double>(0.001f * (torque * torque));
      const float turn = static_cast<float>(3.0 / (p.mass * (p.length * p.length))) * torque;
      const double acceleration =
          3.0 * p.gravity / (2.0 * p.length) * wd::sin(theta) + static_cast<double>(turn);
      s.theta_dot[0] = wd::clamp(speed + acceleration * p.dt, -p.max_speed, p.max_speed);
      s.theta[0] = theta + s.theta_dot[0] * p.dt;
      out.reward(0) = static_cast<float>(-cost);
    });
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    team.once([=] {
      const auto [sine, cosine] = wd::sincos(s.theta[0]);
      obs(0, 0) = static_cast<float>(cosine);
      obs(0, 1) = static_cast<float>(sine);
      if (p.velocities) obs(0, 2) = static_cast<float>(s.theta_dot[0]);
    });
  }
};
