// chase.cu: chasers and runners move over a torus at constant speed and steer by turning. Closeness rewards
// chasers and costs runners.
#include <wd/env.h>

struct Chase {
  struct Params {
    int chasers = 3, runners = 2, episode_length = 100;
    float arena = 10.0f, chaser_speed = 0.25f, runner_speed = 0.2f, max_turn = 0.5f;

    void describe(auto&& field) {
      field("chasers", chasers, {1, 1024}, "agents that chase; their ids come first");
      field("runners", runners, {1, 1024}, "agents that flee");
      field("episode_length", episode_length, {1, 1e6}, "steps of an episode");
      field("arena", arena, {1.0, 1e4}, "side of the square [m]; its edges meet");
      field("chaser_speed", chaser_speed, {0.0, 100.0}, "[m] a step");
      field("runner_speed", runner_speed, {0.0, 100.0}, "[m] a step");
      field("max_turn", max_turn, {0.0, 3.14}, "maximum turn per step [rad]");
    }
  };

  enum Purpose { kX, kY, kHeading };  // what each random draw is for

  struct State {
    wd::PerAgent<float> x, y, heading;
    wd::PerAgent<int> target;      // id of the nearest opponent
    wd::PerAgent<float> distance;  // to the target [m]

    void describe(auto&& field) {
      field("x", x), field("y", y), field("heading", heading);
      field("target", target), field("distance", distance);
    }
  };

  static wd::Spec spec(const Params& p) {
    const std::vector<wd::ObservationPart> observation = {
        {"heading", 2}, {"to_opponent", 2}, {"opponent_heading", 2}};
    const auto action = wd::ActionSpace::box(1, -1.0f, 1.0f, {"turn"});
    return {.roles = {{.name = "chaser", .count = p.chasers, .observation = observation, .action = action},
                      {.name = "runner", .count = p.runners, .observation = observation, .action = action}},
            .time_limit = p.episode_length,
            .at_time_limit = wd::AtTimeLimit::kTruncates,
            .statistics = {{"distance", "to the nearest opponent at the end [m]", "chaser"}},
            .drawing = {.right = p.arena,
                        .top = p.arena,
                        .shapes = {wd::drawing::circle("x", "y", 0.15).facing("heading")}}};
  }

  WD_FN static void reset(auto& team, const Params& p, State& s, wd::Random random) {
    team.each(p.chasers + p.runners, [&](int i) {
      s.x[i] = random.uniform(i, kX, 0.0f, p.arena);
      s.y[i] = random.uniform(i, kY, 0.0f, p.arena);
      s.heading[i] = random.uniform(i, kHeading, -wd::kPi, wd::kPi);
    });
  }

  // Recomputes the fields that follow from positions: after reset, after moving, and after positions are set
  // from outside.
  WD_FN static void derive(auto& team, const Params& p, State& s) {
    team.each(p.chasers + p.runners, [&](int i) {
      const bool chaser = i < p.chasers;
      s.distance[i] = p.arena;
      for (int j = chaser ? p.chasers : 0; j < (chaser ? p.chasers + p.runners : p.chasers); ++j) {
        const float dx = offset(p, s.x[j] - s.x[i]), dy = offset(p, s.y[j] - s.y[i]);
        const float d = wd::sqrt(dx * dx + dy * dy);
        if (d < s.distance[i]) {
          s.distance[i] = d;
          s.target[i] = j;
        }
      }
    });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions actions, wd::Random,
                         wd::Outcome& out) {
    team.each(p.chasers + p.runners, [&](int i) {
      s.heading[i] += p.max_turn * wd::clamp(actions.continuous(i, 0), -1.0f, 1.0f);
      const wd::SinCos direction = wd::sincos(s.heading[i]);
      const float speed = i < p.chasers ? p.chaser_speed : p.runner_speed;
      s.x[i] = wd::wrap(s.x[i] + speed * direction.cos, p.arena);
      s.y[i] = wd::wrap(s.y[i] + speed * direction.sin, p.arena);
    });
    derive(team, p, s);
    team.each(p.chasers + p.runners, [&](int i) {
      const float closeness = wd::exp(-s.distance[i]);
      out.reward(i) = i < p.chasers ? closeness : -closeness;
    });
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    team.each(p.chasers + p.runners, [&](int i) {
      const int j = s.target[i];
      const wd::SinCos own = wd::sincos(s.heading[i]), other = wd::sincos(s.heading[j]);
      obs(i, 0) = own.cos;
      obs(i, 1) = own.sin;
      obs(i, 2) = offset(p, s.x[j] - s.x[i]) / p.arena;
      obs(i, 3) = offset(p, s.y[j] - s.y[i]) / p.arena;
      obs(i, 4) = other.cos;
      obs(i, 5) = other.sin;
    });
  }

 private:
  // Offset along the shorter way around the torus.
  WD_FN static float offset(const Params& p, float d) { return d - p.arena * wd::floor(d / p.arena + 0.5f); }
};
