// simple_spread.cu: agents share out landmarks among them and must not bump into each other. All are paid for
// how close the nearest agent is to each landmark.
//
// The game is "simple spread" of the multi-agent particle environments (Lowe et al., "Multi-agent
// actor-critic for mixed cooperative-competitive environments", NeurIPS 2017). Constants and the order of
// operations are those of mpe2's simple_spread_v3 (tests/envs/simple_spread_oracle_test.py).
// docs/games.md lists the differences.
#include <numeric>
#include <utility>
#include <vector>

#include "particles.h"

struct SimpleSpread {
  struct Params {
    int num_agents = 3, episode_length = 25;
    float local_ratio = 0.5f, agent_size = 0.15f, acceleration = 5.0f, covered_within = 0.1f;
    float dt = 0.1f, damping = 0.25f, contact_force = 100.0f, contact_margin = 1e-3f;

    void describe(auto&& field) {
      field("num_agents", num_agents, {1, 1024}, "agents; there are as many landmarks");
      field("episode_length", episode_length, {1, 1e6}, "steps after which the episode is truncated");
      field("local_ratio", local_ratio, {0.0, 1.0},
            "weight of the own collisions in the reward; the rest is that of the distances");
      field("agent_size", agent_size, wd::above(0.0, 100.0), "radius of an agent");
      field("acceleration", acceleration, {0.0, 1e3}, "of an agent that moves");
      field("covered_within", covered_within, wd::above(0.0, 100.0),
            "distance of an agent that covers a landmark, for the statistic");
      field("dt", dt, wd::above(0.0, 1.0), "time of a step");
      field("damping", damping, {0.0, 1.0}, "part of the velocity that a step takes away");
      field("contact_force", contact_force, {0.0, 1e6}, "force for each unit of overlap");
      field("contact_margin", contact_margin, wd::above(0.0, 1.0),
            "distance over which contact begins softly");
    }
  };

  enum Purpose { kX, kY, kLandmarkX, kLandmarkY };  // what each random draw is for

  struct State {
    wd::PerAgent<float> x, y, vx, vy;
    wd::Array<float> landmark_x, landmark_y, distance;  // distance: to the nearest agent, after the step
    wd::PerReplica<int> covered;                        // landmarks with an agent nearby, after the step
    wd::PerReplica<int> collisions;                     // pairs that overlap, summed over steps
    wd::Scratch<float> force_x, force_y;                // [agents]

    void describe(auto&& field, const Params& p) {
      const int landmarks = p.num_agents;
      field("x", x), field("y", y), field("vx", vx), field("vy", vy);
      field("landmark_x", landmark_x, landmarks), field("landmark_y", landmark_y, landmarks);
      field("distance", distance, landmarks), field("covered", covered), field("collisions", collisions);
      field("force_x", force_x, p.num_agents), field("force_y", force_y, p.num_agents);
    }
  };

  static wd::Spec spec(const Params& p) {
    const int agents = p.num_agents, landmarks = p.num_agents;
    // The positions of `count` things in a part.
    const auto positions = [](const char* name, const char* part, int count) {
      return wd::EntityList{.name = name, .count = count, .x = {part, 0, 2}, .y = {part, 1, 2}};
    };
    return {.roles = {{.name = "agent",
                       .count = agents,
                       .observation = {{"own_velocity", 2},
                                       {"own_position", 2},
                                       {"landmarks", 2 * landmarks},
                                       {"others", 2 * (agents - 1)}},
                       .action = wd::ActionSpace::discrete({5}, {"move"}),
                       .entities = {{positions("landmarks", "landmarks", landmarks),
                                     positions("agents", "others", agents - 1)}}}},
            .time_limit = p.episode_length,
            .statistics = {{"covered", "landmarks with an agent nearby, at the end", ""},
                           {"distance", "from a landmark to the nearest agent, at the end", ""},
                           {"collisions", "pairs of agents that overlap, summed over steps", ""}},
            .streams = {{"state", wd::StreamSpec::kReplica, {4 * agents + 2 * landmarks}}},
            .drawing = {.left = -1.5,
                        .bottom = -1.5,
                        .right = 1.5,
                        .top = 1.5,
                        .shapes = {wd::drawing::circle("x", "y", p.agent_size),
                                   wd::drawing::circle("landmark_x", "landmark_y", 0.05)}}};
  }

  WD_FN static void reset(auto& team, const Params& p, State& s, wd::Random random) {
    team.each(p.num_agents, [=, &s](int i) {
      s.x[i] = random.uniform(i, kX, -1.0f, 1.0f);
      s.y[i] = random.uniform(i, kY, -1.0f, 1.0f);
      s.vx[i] = s.vy[i] = 0.0f;
    });
    team.each(p.num_agents, [=, &s](int l) {
      s.landmark_x[l] = random.uniform(l, kLandmarkX, -1.0f, 1.0f);
      s.landmark_y[l] = random.uniform(l, kLandmarkY, -1.0f, 1.0f);
      s.distance[l] = 0.0f;
    });
    team.once([&] { s.covered = 0, s.collisions = 0; });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    const int agents = p.num_agents;
    team.each(agents, [=, &s](int i) {  // own acceleration (stay, left, right, down, up), then contacts
      const int move = a.discrete(i, 0);
      float force_x = ((move == 2 ? 1.0f : 0.0f) - (move == 1 ? 1.0f : 0.0f)) * p.acceleration,
            force_y = ((move == 4 ? 1.0f : 0.0f) - (move == 3 ? 1.0f : 0.0f)) * p.acceleration;
      for (int j = 0; j < agents; ++j) {
        const float dx = s.x[i] - s.x[j], dy = s.y[i] - s.y[j];
        const float strength = j == i ? 0.0f : contact(p, square(dx, dy));
        force_x += dx * strength;
        force_y += dy * strength;
      }
      s.force_x[i] = force_x;
      s.force_y[i] = force_y;
    });
    team.each(agents, [=, &s](int i) {  // move with the old velocity, then change it
      s.x[i] += s.vx[i] * p.dt;
      s.y[i] += s.vy[i] * p.dt;
      s.vx[i] = s.vx[i] * (1.0f - p.damping) + s.force_x[i] * p.dt;
      s.vy[i] = s.vy[i] * (1.0f - p.damping) + s.force_y[i] * p.dt;
    });
    team.once([&] { s.covered = 0; });
    team.each(agents, [=, &s, &team](int l) {  // measure how well the landmarks are covered
      float least = square(s.landmark_x[l] - s.x[0], s.landmark_y[l] - s.y[0]);
      for (int i = 1; i < agents; ++i)
        least = wd::min(least, square(s.landmark_x[l] - s.x[i], s.landmark_y[l] - s.y[i]));
      s.distance[l] = wd::sqrt(least);
      team.add(s.covered.get(), s.distance[l] < p.covered_within ? 1 : 0);
    });
    const float distances = team.sum(agents, [=, &s](int l) { return s.distance[l]; });
    team.each(agents, [=, &s, &out, &team](int i) {
      int others = 0, later = 0;  // that it overlaps with
      for (int j = 0; j < agents; ++j) {
        const float apart = square(s.x[i] - s.x[j], s.y[i] - s.y[j]);
        const int overlaps = j != i && apart < 4.0f * p.agent_size * p.agent_size ? 1 : 0;
        others += overlaps;
        later += j > i ? overlaps : 0;
      }
      team.add(s.collisions.get(), later);
      out.reward(i) = -(1.0f - p.local_ratio) * distances - p.local_ratio * static_cast<float>(others);
    });
  }

  // Pairs of agents exchange their landmarks while that makes the sum of squared distances smaller.
  static void scripted(const Params& p, const State& s, int agent, wd::ScriptedAction& action) {
    std::vector<int> target(static_cast<std::size_t>(p.num_agents));
    std::iota(target.begin(), target.end(), 0);
    const auto far = [&](int i, int l) { return square(s.landmark_x[l] - s.x[i], s.landmark_y[l] - s.y[i]); };
    for (int pass = 0; pass < 2; ++pass) {
      for (int i = 0; i < p.num_agents; ++i) {
        for (int j = 0; j < i; ++j) {
          int &of_i = target[static_cast<std::size_t>(i)], &of_j = target[static_cast<std::size_t>(j)];
          if (far(i, of_j) + far(j, of_i) < far(i, of_i) + far(j, of_j)) std::swap(of_i, of_j);
        }
      }
    }
    const int l = target[static_cast<std::size_t>(agent)];
    action.discrete(
        0, particles::Motion{p.acceleration, p.dt, p.damping}.toward(
               s.landmark_x[l] - s.x[agent], s.landmark_y[l] - s.y[agent], s.vx[agent], s.vy[agent]));
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    const int agents = p.num_agents, landmarks = p.num_agents;
    team.write_parts(obs, agents, 2 + landmarks + agents - 1, 2,
                     [=](int i, int c) { return particles::seen(s, landmarks, i, c); });
  }

  // The whole state: x of all agents, then y and the velocities; then x and y of all landmarks.
  WD_FN static void streams(auto& team, const Params& p, const State& s, wd::Streams rows) {
    const int agents = p.num_agents;
    float* const row = rows.of_replica<float>(0);
    team.each(6 * agents, [=](int k) {
      const int i = k % agents, c = k / agents;
      row[k] = c == 0   ? s.x[i]
               : c == 1 ? s.y[i]
               : c == 2 ? s.vx[i]
               : c == 3 ? s.vy[i]
               : c == 4 ? s.landmark_x[i]
                        : s.landmark_y[i];
    });
  }

 private:
  WD_FN static float square(float x, float y) { return x * x + y * y; }

  // Force between two agents, divided by their distance: as in simple_tag.cu.
  WD_FN static float contact(const Params& p, float square) {
    const float touching = 2.0f * p.agent_size, reach = touching + 17.0f * p.contact_margin;
    if (square > reach * reach || square == 0.0f) return 0.0f;
    const float distance = wd::sqrt(square);
    const float overlap = (touching - distance) / p.contact_margin;
    const float softened = wd::max(overlap, 0.0f) + wd::log(1.0f + wd::exp(-wd::abs(overlap)));
    return p.contact_force * (softened * p.contact_margin) / distance;
  }
};
