// acrobot.cu: swing the free end of two links above a line by a torque on their joint.
// Gymnasium's Acrobot-v1.
//
// Sutton, "Generalization in reinforcement learning: successful examples using sparse coarse coding", 1995;
// Sutton and Barto, "Reinforcement learning: an introduction". The state is double and operations follow
// Gymnasium's order, because a double pendulum amplifies rounding errors. As in Gymnasium, starts are rounded
// to float32 (tests/envs/acrobot_oracle_test.py).
#include <wd/env.h>

struct Acrobot {
  enum Equations { kBook, kNips };
  // Constants, because as parameters they need more than the 64 registers that a GPU gives to each thread of
  // a block of 1,024.
  static constexpr double kGravity = 9.8;                          // [m/s^2]
  static constexpr double kLinkLength1 = 1.0, kLinkLength2 = 1.0;  // [m]
  static constexpr double kLinkMass1 = 1.0, kLinkMass2 = 1.0;      // [kg]
  static constexpr double kLinkComPos1 = 0.5, kLinkComPos2 = 0.5;  // centers of mass, from the upper ends [m]
  static constexpr double kLinkMoi = 1.0;                          // moment of inertia of each link [kg m^2]

  static constexpr int kNumAgents = 1;

  struct Params {
    double dt = 0.2;
    double max_vel_1 = 4.0 * wd::kPiDouble, max_vel_2 = 9.0 * wd::kPiDouble;
    double avail_torque = 1.0, torque_noise_max = 0.0;
    Equations book_or_nips = kBook;
    int episode_length = 500;

    void describe(auto&& field) {
      field("dt", dt, wd::above(0.0, 1.0), "time of a step [s]");
      field("max_vel_1", max_vel_1, wd::above(0.0, 1e3), "maximum angular speed of the upper link [rad/s]");
      field("max_vel_2", max_vel_2, wd::above(0.0, 1e3), "maximum angular speed of the joint [rad/s]");
      field("avail_torque", avail_torque, {0.0, 1e6}, "torque of a push to either side [N m]");
      field("torque_noise_max", torque_noise_max, {0.0, 1e6},
            "bound of the noise that is added to torques [N m]");
      field.choice("book_or_nips", book_or_nips, {"book", "nips"},
                   "equations of Sutton and Barto's book, or those printed in the paper of 1995");
      field("episode_length", episode_length, {1, 1e6}, "steps after which the episode is truncated");
    }
  };

  enum Purpose { kTheta1, kTheta2, kTheta1Dot, kTheta2Dot, kNoise };  // what each random draw is for

  // Angles [rad], counterclockwise: theta1 of the upper link from hanging down, theta2 of the lower link from
  // the direction of the upper one. The joint's place [m] and the lower link's angle from hanging down follow
  // from them.
  struct State {
    wd::PerAgent<double> theta1, theta2, theta1_dot, theta2_dot;
    wd::PerAgent<double> joint_x, joint_y, lower_angle;
    wd::Scratch<double> stage;  // of the method of Runge and Kutta
    void describe(auto&& field) {
      field("theta1", theta1), field("theta2", theta2);
      field("theta1_dot", theta1_dot), field("theta2_dot", theta2_dot);
      field("joint_x", joint_x), field("joint_y", joint_y), field("lower_angle", lower_angle);
      field("stage", stage, 8);
    }
  };

  static wd::Spec spec(const Params& p) {
    constexpr double kGoal = 1.0, kMargin = 0.2;  // [m]
    const double reach = kLinkLength1 + kLinkLength2 + kMargin, right_angle = 0.5 * wd::kPiDouble;
    return {.roles = {{.name = "acrobot",
                       .observation = {{"cos_theta1"},
                                       {"sin_theta1"},
                                       {"cos_theta2"},
                                       {"sin_theta2"},
                                       {"theta1_dot"},
                                       {"theta2_dot"}},
                       .action = wd::ActionSpace::discrete({3}, {"torque"})}},
            .time_limit = p.episode_length,
            .drawing = {
                .left = -reach,
                .bottom = -reach,
                .right = reach,
                .top = reach,
                .shapes = {
                    wd::drawing::line(-reach, kGoal, 2.0 * reach, 0.0),
                    wd::drawing::line(0.0, 0.0, kLinkLength1, {"theta1", 1.0, -right_angle}),
                    wd::drawing::line("joint_x", "joint_y", kLinkLength2, {"lower_angle", 1.0, -right_angle}),
                    wd::drawing::circle(0.0, 0.0, 0.08), wd::drawing::circle("joint_x", "joint_y", 0.08)}}};
  }

  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random random) {
    team.once([=, &s] {
      const auto start = [&](Purpose purpose) {
        return static_cast<double>(static_cast<float>(-0.1 + 0.2 * random.uniform_double(0, purpose)));
      };
      s.theta1[0] = start(kTheta1), s.theta2[0] = start(kTheta2);
      s.theta1_dot[0] = start(kTheta1Dot), s.theta2_dot[0] = start(kTheta2Dot);
      place_links(s);
    });
  }

  WD_FN static void derive(auto& team, const Params&, State& s) {
    team.once([=, &s] { place_links(s); });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random random,
                         wd::Outcome& out) {
    double torque = p.avail_torque * static_cast<double>(a.discrete(0, 0) - 1);
    if (p.torque_noise_max > 0.0)
      torque += -p.torque_noise_max + 2.0 * p.torque_noise_max * random.uniform_double(0, kNoise);
    // Phases of their own: a GPU's registers do not hold the variables of the whole method.
    for (int stage = 0; stage < 4; ++stage) team.once([=, &s] { add_stage(p, s, stage, torque); });
    team.once([=, &s, &out] {
      const Motion next = moved(motion(s), p.dt / 6.0, {s.stage[4], s.stage[5], s.stage[6], s.stage[7]});
      s.theta1[0] = wrap(next.theta1);
      s.theta2[0] = wrap(next.theta2);
      s.theta1_dot[0] = wd::clamp(next.theta1_dot, -p.max_vel_1, p.max_vel_1);
      s.theta2_dot[0] = wd::clamp(next.theta2_dot, -p.max_vel_2, p.max_vel_2);
      place_links(s);
      const bool above = -wd::cos(s.theta1[0]) - wd::cos(s.lower_angle[0]) > 1.0;
      out.reward(0) = above ? 0.0f : -1.0f;
      if (above) out.terminate();
    });
  }

  WD_FN static void observe(auto& team, const Params&, const State& s, wd::Observations obs) {
    team.once([=] {
      const auto upper = wd::sincos(s.theta1[0]), joint = wd::sincos(s.theta2[0]);
      obs(0, 0) = static_cast<float>(upper.cos);
      obs(0, 1) = static_cast<float>(upper.sin);
      obs(0, 2) = static_cast<float>(joint.cos);
      obs(0, 3) = static_cast<float>(joint.sin);
      obs(0, 4) = static_cast<float>(s.theta1_dot[0]);
      obs(0, 5) = static_cast<float>(s.theta2_dot[0]);
    });
  }

 private:
  // Angles and speeds, or their derivatives by time.
  struct Motion {
    double theta1, theta2, theta1_dot, theta2_dot;
  };

  // base + scale * slope
  WD_FN static Motion moved(const Motion& base, double scale, const Motion& slope) {
    return {base.theta1 + scale * slope.theta1, base.theta2 + scale * slope.theta2,
            base.theta1_dot + scale * slope.theta1_dot, base.theta2_dot + scale * slope.theta2_dot};
  }

  WD_FN static Motion motion(const State& s) {
    return {s.theta1[0], s.theta2[0], s.theta1_dot[0], s.theta2_dot[0]};
  }

  // Stage 0, 1, 2 or 3 of the classical Runge-Kutta method: finds the slope where that of the stage before
  // leads (values 0 to 3 of s.stage), and adds it to the weighted sum of slopes (4 to 7).
  WD_FN static void add_stage(const Params& p, State& s, int stage, double torque) {
    Motion at = motion(s);
    if (stage > 0)
      at = moved(at, stage == 3 ? p.dt : p.dt / 2.0, {s.stage[0], s.stage[1], s.stage[2], s.stage[3]});
    const Motion found = derivative(p, at, torque);
    const double weight = stage == 0 || stage == 3 ? 1.0 : 2.0;
    const double slopes[] = {found.theta1, found.theta2, found.theta1_dot, found.theta2_dot};
    for (int k = 0; k < 4; ++k) {
      s.stage[k] = slopes[k];
      s.stage[4 + k] = stage == 0 ? slopes[k] : s.stage[4 + k] + weight * slopes[k];
    }
  }

  WD_FN static Motion derivative(const Params& p, const Motion& at, double torque) {
    constexpr double kRightAngle = wd::kPiDouble / 2.0;
    constexpr double l1 = kLinkLength1, lc1 = kLinkComPos1, lc2 = kLinkComPos2;
    constexpr double m1 = kLinkMass1, m2 = kLinkMass2, inertia = kLinkMoi, g = kGravity;
    const auto [sine, cosine] = wd::sincos(at.theta2);
    const double d1 =
        m1 * (lc1 * lc1) + m2 * (l1 * l1 + lc2 * lc2 + 2.0 * l1 * lc2 * cosine) + inertia + inertia;
    const double d2 = m2 * (lc2 * lc2 + l1 * lc2 * cosine) + inertia;
    const double phi2 = m2 * lc2 * g * wd::cos(at.theta1 + at.theta2 - kRightAngle);
    const double phi1 = -m2 * l1 * lc2 * (at.theta2_dot * at.theta2_dot) * sine -
                        2.0 * m2 * l1 * lc2 * at.theta2_dot * at.theta1_dot * sine +
                        (m1 * lc1 + m2 * l1) * g * wd::cos(at.theta1 - kRightAngle) + phi2;
    double force = torque + d2 / d1 * phi1;
    if (p.book_or_nips == kBook) force -= m2 * l1 * lc2 * (at.theta1_dot * at.theta1_dot) * sine;
    const double theta2_acceleration = (force - phi2) / (m2 * (lc2 * lc2) + inertia - d2 * d2 / d1);
    const double theta1_acceleration = -(d2 * theta2_acceleration + phi1) / d1;
    return {at.theta1_dot, at.theta2_dot, theta1_acceleration, theta2_acceleration};
  }

  // The angle in [-pi, pi]. Up to two turns this gives the bits of Gymnasium's loop.
  WD_FN static double wrap(double angle) {
    constexpr double kTurn = 2.0 * wd::kPiDouble;
    return wd::abs(angle) <= wd::kPiDouble ? angle
                                           : angle - kTurn * wd::floor((angle + wd::kPiDouble) / kTurn);
  }

  WD_FN static void place_links(State& s) {
    const auto [sine, cosine] = wd::sincos(s.theta1[0]);
    s.joint_x[0] = kLinkLength1 * sine;
    s.joint_y[0] = -kLinkLength1 * cosine;
    s.lower_angle[0] = s.theta2[0] + s.theta1[0];
  }
};
