// cartpole.cu: balance a pole on a cart by pushing the cart left or right.
//
// Barto, Sutton and Anderson, "Neuronlike adaptive elements that can solve difficult learning control
// problems", 1983, with the constants of Gymnasium's CartPole-v1. A balanced pole amplifies rounding errors
// by a factor of e^40 within an episode, so the state is double and operations follow Gymnasium's order
// (tests/envs/cartpole_oracle_test.py).
#include <wd/env.h>

struct Cartpole {
  static constexpr int kNumAgents = 1;

  struct Params {
    double gravity = 9.8, masscart = 1.0, masspole = 0.1, length = 0.5, force_mag = 10.0, tau = 0.02;
    double theta_threshold_radians = 12.0 * 2.0 * wd::kPiDouble / 360.0, x_threshold = 2.4;
    int episode_length = 500;
    bool velocities = true;

    void describe(auto&& field) {
      field("gravity", gravity, {0.0, 1e3}, "acceleration of free fall [m/s^2]");
      field("masscart", masscart, wd::above(0.0, 1e6), "mass of the cart [kg]");
      field("masspole", masspole, wd::above(0.0, 1e6), "mass of the pole [kg]");
      field("length", length, wd::above(0.0, 1e3), "half the length of the pole [m]");
      field("force_mag", force_mag, {0.0, 1e6}, "force of a push [N]");
      field("tau", tau, wd::above(0.0, 1.0), "time of a step [s]");
      field("theta_threshold_radians", theta_threshold_radians, wd::above(0.0, 1.5),
            "the episode ends beyond this angle [rad]");
      field("x_threshold", x_threshold, wd::above(0.0, 1e6), "the episode ends beyond this distance [m]");
      field("episode_length", episode_length, {1, 1e6}, "steps after which the episode is truncated");
      field("velocities", velocities, "observe velocities; without them, a policy needs a memory");
    }
  };

  enum Purpose { kX, kXDot, kTheta, kThetaDot };  // what each random draw is for

  struct State {
    wd::PerAgent<double> x, x_dot, theta, theta_dot;  // [m], [m/s], [rad] from upright, [rad/s]
    void describe(auto&& field) {
      field("x", x), field("x_dot", x_dot), field("theta", theta), field("theta_dot", theta_dot);
    }
  };

  static wd::Spec spec(const Params& p) {
    using Parts = std::vector<wd::ObservationPart>;
    return {.roles = {{.name = "cart",
                       .observation = p.velocities ? Parts{{"x"}, {"x_dot"}, {"theta"}, {"theta_dot"}}
                                                   : Parts{{"x"}, {"theta"}},
                       .action = wd::ActionSpace::discrete({2}, {"push"})}},
            .time_limit = p.episode_length,
            .drawing = {.left = -p.x_threshold,
                        .bottom = -0.6,
                        .right = p.x_threshold,
                        .top = 2.4 * p.length + 0.2,
                        .shapes = {wd::drawing::line(-p.x_threshold, -0.15, 2.0 * p.x_threshold, 0.0),
                                   wd::drawing::rectangle("x", 0.0, 0.5, 0.3),
                                   wd::drawing::line("x", 0.0, 2.0 * p.length,
                                                     {"theta", -1.0, 0.5 * wd::kPiDouble})}}};
  }

  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random random) {
    team.once([=, &s] {
      const auto start = [&](Purpose purpose) { return -0.05 + 0.1 * random.uniform_double(0, purpose); };
      s.x[0] = start(kX), s.x_dot[0] = start(kXDot);
      s.theta[0] = start(kTheta), s.theta_dot[0] = start(kThetaDot);
    });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.once([=, &s, &out] {
      const double force = a.discrete(0, 0) == 1 ? p.force_mag : -p.force_mag;
      const auto [sine, cosine] = wd::sincos(s.theta[0]);
      const double mass = p.masspole + p.masscart, moment = p.masspole * p.length;
      const double push = (force + moment * (s.theta_dot[0] * s.theta_dot[0]) * sine) / mass;
      const double theta_acceleration = (p.gravity * sine - cosine * push) /
                                        (p.length * (4.0 / 3.0 - p.masspole * (cosine * cosine) / mass));
      const double x_acceleration = push - moment * theta_acceleration * cosine / mass;
      s.x[0] = s.x[0] + p.tau * s.x_dot[0];
      s.x_dot[0] = s.x_dot[0] + p.tau * x_acceleration;
      s.theta[0] = s.theta[0] + p.tau * s.theta_dot[0];
      s.theta_dot[0] = s.theta_dot[0] + p.tau * theta_acceleration;
      out.reward(0) = 1.0f;
      if (wd::abs(s.x[0]) > p.x_threshold || wd::abs(s.theta[0]) > p.theta_threshold_radians) out.terminate();
    });
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    team.once([=] {
      obs(0, 0) = static_cast<float>(s.x[0]);
      obs(0, p.velocities ? 2 : 1) = static_cast<float>(s.theta[0]);
      if (!p.velocities) return;
      obs(0, 1) = static_cast<float>(s.x_dot[0]);
      obs(0, 3) = static_cast<float>(s.theta_dot[0]);
    });
  }
};
