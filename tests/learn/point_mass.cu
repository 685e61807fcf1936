// point_mass.cu: a point in the plane, pushed by two forces, shall come to a place that is drawn for each
// episode and stay there. The reward is minus the distance; `scale` multiplies it. No setting was chosen on
// this game: it judges defaults (docs/learning/README.md).
#include <wd/env.h>

struct PointMass {
  static constexpr float kDecay = 0.8f, kPush = 0.02f;  // of the speed per step; of a force of 1

  static constexpr int kNumAgents = 1;

  struct Params {
    double scale = 1.0;
    int episode_length = 100;
    void describe(auto&& field) {
      field("scale", scale, wd::above(0.0, 1e38), "factor of rewards");
      field("episode_length", episode_length, {1, 1e6}, "steps after which the episode is truncated");
    }
  };
  enum Purpose { kX, kY, kGoalX, kGoalY };

  struct State {
    wd::PerReplica<float> x, y, speed_x, speed_y, goal_x, goal_y;
    void describe(auto&& field) {
      field("x", x), field("y", y), field("speed_x", speed_x), field("speed_y", speed_y);
      field("goal_x", goal_x), field("goal_y", goal_y);
    }
  };

  static wd::Spec spec(const Params& p) {
    return {.roles = {{.name = "point",
                       .count = 1,
                       .observation = {{"place", 2}, {"speed", 2}, {"goal", 2}},
                       .action = wd::ActionSpace::box(2, -1.0f, 1.0f, {"force_x", "force_y"})}},
            .time_limit = p.episode_length,
            .at_time_limit = wd::AtTimeLimit::kTruncates};
  }
  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random random) {
    team.once([=, &s] {
      s.x = random.uniform(0, kX, -1.0f, 1.0f);
      s.y = random.uniform(0, kY, -1.0f, 1.0f);
      s.goal_x = random.uniform(0, kGoalX, -1.0f, 1.0f);
      s.goal_y = random.uniform(0, kGoalY, -1.0f, 1.0f);
      s.speed_x = 0.0f;
      s.speed_y = 0.0f;
    });
  }
  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.once([=, &s, &out] {
      s.speed_x = kDecay * s.speed_x + kPush * wd::clamp(a.continuous(0, 0), -1.0f, 1.0f);
      s.speed_y = kDecay * s.speed_y + kPush * wd::clamp(a.continuous(0, 1), -1.0f, 1.0f);
      s.x = s.x + s.speed_x;
      s.y = s.y + s.speed_y;
      const float dx = s.goal_x - s.x, dy = s.goal_y - s.y;
      out.reward(0) = static_cast<float>(p.scale) * -wd::sqrt(dx * dx + dy * dy);
    });
  }
  WD_FN static void observe(auto& team, const Params&, const State& s, wd::Observations obs) {
    team.once([=] {
      obs(0, 0) = s.x;
      obs(0, 1) = s.y;
      obs(0, 2) = s.speed_x;
      obs(0, 3) = s.speed_y;
      obs(0, 4) = s.goal_x;
      obs(0, 5) = s.goal_y;
    });
  }
  // As fast as it can, and braking in time.
  static void scripted(const Params&, const State& s, int, wd::ScriptedAction& action) {
    const float x = s.goal_x - s.x, y = s.goal_y - s.y;
    action.continuous(0, wd::clamp(12.0f * x - 55.0f * s.speed_x, -1.0f, 1.0f));
    action.continuous(1, wd::clamp(12.0f * y - 55.0f * s.speed_y, -1.0f, 1.0f));
  }
};
