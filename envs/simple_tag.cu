// simple_tag.cu: adversaries chase a faster good agent between round landmarks. Each agent accelerates in one
// of four directions; overlapping bodies push each other apart.
//
// The game is "simple tag" of the multi-agent particle environments (Lowe et al., "Multi-agent actor-critic
// for mixed cooperative-competitive environments", NeurIPS 2017). The constants, the order of operations and
// the observation layout are those of JaxMARL's MPE_simple_tag_v3 (tests/envs/simple_tag_oracle_test.py).
// docs/games.md lists the differences from PettingZoo's version.
#include "particles.h"

struct SimpleTag {
  struct Params {
    int num_adversaries = 3, num_good_agents = 1, num_landmarks = 2, episode_length = 25;
    float adversary_size = 0.075f, good_agent_size = 0.05f, landmark_size = 0.2f;
    float adversary_acceleration = 3.0f, good_agent_acceleration = 4.0f;
    float adversary_max_speed = 1.0f, good_agent_max_speed = 1.3f;
    float dt = 0.1f, damping = 0.25f, contact_force = 100.0f, contact_margin = 1e-3f;
    float tag_reward_for_adversary = 10.0f, tag_penalty_for_good_agent = 10.0f;

    void describe(auto&& field) {
      field("num_adversaries", num_adversaries, {1, 16384}, "agents that chase; their ids come first");
      field("num_good_agents", num_good_agents, {1, 16384}, "agents that flee");
      field("num_landmarks", num_landmarks, {0, 32768}, "obstacles that stay where they are");
      field("episode_length", episode_length, {1, 1e6}, "steps after which the episode is truncated");
      field("adversary_size", adversary_size, wd::above(0.0, 100.0), "radius of an adversary");
      field("good_agent_size", good_agent_size, wd::above(0.0, 100.0), "radius of a good agent");
      field("landmark_size", landmark_size, wd::above(0.0, 100.0), "radius of a landmark");
      field("adversary_acceleration", adversary_acceleration, {0.0, 1e3}, "of an adversary that moves");
      field("good_agent_acceleration", good_agent_acceleration, {0.0, 1e3}, "of a good agent that moves");
      field("adversary_max_speed", adversary_max_speed, {0.0, 1e3}, "maximum speed of an adversary");
      field("good_agent_max_speed", good_agent_max_speed, {0.0, 1e3}, "maximum speed of a good agent");
      field("dt", dt, wd::above(0.0, 1.0), "time of a step");
      field("damping", damping, {0.0, 1.0}, "part of the velocity that a step takes away");
      field("contact_force", contact_force, {0.0, 1e6}, "force for each unit of overlap");
      field("contact_margin", contact_margin, wd::above(0.0, 1.0),
            "distance over which contact begins softly");
      field("tag_reward_for_adversary", tag_reward_for_adversary, {0.0, 1e6},
            "reward of every adversary for each that touches a good agent");
      field("tag_penalty_for_good_agent", tag_penalty_for_good_agent, {0.0, 1e6},
            "cost of each adversary that one is touched by");
    }
  };

  enum Purpose { kX, kY, kLandmarkX, kLandmarkY };  // what each random draw is for

  struct State {
    wd::PerAgent<float> x, y, vx, vy;
    wd::Array<float> landmark_x, landmark_y;  // [landmarks]
    wd::PerReplica<int> tags;                 // touches, summed over steps
    wd::Scratch<float> force_x, force_y;      // [agents]
    wd::Scratch<int> touches;                 // [good agents]: number of adversaries that touch each

    void describe(auto&& field, const Params& p) {
      field("x", x), field("y", y), field("vx", vx), field("vy", vy);
      field("landmark_x", landmark_x, p.num_landmarks), field("landmark_y", landmark_y, p.num_landmarks);
      field("tags", tags);
      const int agents = p.num_adversaries + p.num_good_agents;
      field("force_x", force_x, agents), field("force_y", force_y, agents);
      field("touches", touches, p.num_good_agents);
    }
  };

  static wd::Spec spec(const Params& p) {
    const int agents = p.num_adversaries + p.num_good_agents;
    const std::vector<wd::ObservationPart> good = {{"own_velocity", 2},
                                                   {"own_position", 2},
                                                   {"landmarks", 2 * p.num_landmarks},
                                                   {"others", 2 * (agents - 1)}};
    std::vector<wd::ObservationPart> adversary = good;
    adversary.push_back({"last_good_agents_velocity", 2});
    const auto action = wd::ActionSpace::discrete({5}, {"move"});
    // The positions of `count` things in a part, from the first on.
    const auto positions = [](const char* name, const char* part, int first, int count) {
      return wd::EntityList{
          .name = name, .count = count, .x = {part, 2 * first, 2}, .y = {part, 2 * first + 1, 2}};
    };
    const auto seen = [&](int adversaries, int good_agents) {
      return wd::Entities{{positions("landmarks", "landmarks", 0, p.num_landmarks),
                           positions("adversaries", "others", 0, adversaries),
                           positions("good_agents", "others", adversaries, good_agents)}};
    };
    return {.roles = {{.name = "adversary",
                       .count = p.num_adversaries,
                       .observation = adversary,
                       .action = action,
                       .entities = seen(p.num_adversaries - 1, p.num_good_agents)},
                      {.name = "good_agent",
                       .count = p.num_good_agents,
                       .observation = good,
                       .action = action,
                       .entities = seen(p.num_adversaries, p.num_good_agents - 1)}},
            .time_limit = p.episode_length,
            .statistics = {{"tags", "touches between adversaries and good agents, summed over steps", ""}},
            .drawing = {.left = -1.5,
                        .bottom = -1.5,
                        .right = 1.5,
                        .top = 1.5,
                        .shapes = {wd::drawing::circle("landmark_x", "landmark_y", p.landmark_size),
                                   wd::drawing::circle("x", "y", p.adversary_size).of("adversary"),
                                   wd::drawing::circle("x", "y", p.good_agent_size).of("good_agent")}}};
  }

  WD_FN static void reset(auto& team, const Params& p, State& s, wd::Random random) {
    team.each(p.num_adversaries + p.num_good_agents, [=, &s](int i) {
      s.x[i] = random.uniform(i, kX, -kEdge, kEdge);
      s.y[i] = random.uniform(i, kY, -kEdge, kEdge);
      s.vx[i] = s.vy[i] = 0.0f;
    });
    team.each(p.num_landmarks, [=, &s](int l) {
      s.landmark_x[l] = random.uniform(l, kLandmarkX, -kEdge, kEdge);
      s.landmark_y[l] = random.uniform(l, kLandmarkY, -kEdge, kEdge);
    });
    team.once([&] { s.tags = 0; });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    const int agents = p.num_adversaries + p.num_good_agents;
    team.each(agents, [=, &s](int i) {  // own acceleration (stay, left, right, down, up), then contacts
      const int move = a.discrete(i, 0);
      const float acceleration = i < p.num_adversaries ? p.adversary_acceleration : p.good_agent_acceleration;
      float force_x = ((move == 2 ? 1.0f : 0.0f) - (move == 1 ? 1.0f : 0.0f)) * acceleration,
            force_y = ((move == 4 ? 1.0f : 0.0f) - (move == 3 ? 1.0f : 0.0f)) * acceleration;
      const auto push = [&](float x, float y, float other_size) {
        const float dx = s.x[i] - x, dy = s.y[i] - y;
        const float strength = contact(p, dx * dx + dy * dy, size(p, i) + other_size);
        force_x += dx * strength;
        force_y += dy * strength;
      };
      for (int j = 0; j < agents; ++j) {
        if (j != i) push(s.x[j], s.y[j], size(p, j));
      }
      for (int l = 0; l < p.num_landmarks; ++l) push(s.landmark_x[l], s.landmark_y[l], p.landmark_size);
      s.force_x[i] = force_x;
      s.force_y[i] = force_y;
    });
    team.each(agents, [=, &s](int i) {  // move with the old velocity, then change it
      s.x[i] += s.vx[i] * p.dt;
      s.y[i] += s.vy[i] * p.dt;
      const float vx = s.vx[i] * (1.0f - p.damping) + s.force_x[i] * p.dt,
                  vy = s.vy[i] * (1.0f - p.damping) + s.force_y[i] * p.dt;
      const float speed = wd::sqrt(vx * vx + vy * vy);
      const float top = i < p.num_adversaries ? p.adversary_max_speed : p.good_agent_max_speed;
      s.vx[i] = speed > top ? vx / speed * top : vx;
      s.vy[i] = speed > top ? vy / speed * top : vy;
    });
    team.each(p.num_good_agents, [=, &s, &out, &team](int g) {  // tag
      const int i = p.num_adversaries + g;
      int touches = 0;
      for (int k = 0; k < p.num_adversaries; ++k) {
        const float dx = s.x[i] - s.x[k], dy = s.y[i] - s.y[k];
        touches += wd::sqrt(dx * dx + dy * dy) < p.good_agent_size + p.adversary_size ? 1 : 0;
      }
      s.touches[g] = touches;
      team.add(s.tags.get(), touches);
      out.reward(i) = -p.tag_penalty_for_good_agent * static_cast<float>(touches) -
                      (cost_outside(wd::abs(s.x[i])) + cost_outside(wd::abs(s.y[i])));
    });
    team.each(p.num_adversaries, [=, &s, &out](int k) {  // rewards, shared by all adversaries
      int touches = 0;
      for (int g = 0; g < p.num_good_agents; ++g) touches += s.touches[g];
      out.reward(k) = p.tag_reward_for_adversary * static_cast<float>(touches);
    });
  }

  // Adversaries accelerate toward the nearest good agent. Good agents accelerate away from the nearest
  // adversary, or back toward the center if being outside would cost them. Both move along the axis with the
  // larger difference.
  static void scripted(const Params& p, const State& s, int agent, wd::ScriptedAction& action) {
    const bool flees = agent >= p.num_adversaries;
    const int begin = flees ? 0 : p.num_adversaries,
              end = flees ? p.num_adversaries : p.num_adversaries + p.num_good_agents;
    const auto away = [&](int j) {
      const float dx = s.x[agent] - s.x[j], dy = s.y[agent] - s.y[j];
      return dx * dx + dy * dy;
    };
    int nearest = begin;
    for (int j = begin + 1; j < end; ++j) {
      if (away(j) < away(nearest)) nearest = j;
    }
    const float sign = flees ? -1.0f : 1.0f;
    float dx = (s.x[nearest] - s.x[agent]) * sign, dy = (s.y[nearest] - s.y[agent]) * sign;
    if (flees && wd::abs(s.x[agent]) > kFree) dx = -10.0f * s.x[agent];
    if (flees && wd::abs(s.y[agent]) > kFree) dy = -10.0f * s.y[agent];
    const bool along_x = wd::abs(dx) > wd::abs(dy);
    action.discrete(0, along_x ? (dx < 0.0f ? 1 : 2) : (dy < 0.0f ? 3 : 4));
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    const int agents = p.num_adversaries + p.num_good_agents, landmarks = p.num_landmarks;
    const int pairs = 2 + landmarks + agents - 1;
    team.write_parts(obs, agents, pairs, 2,
                     [=](int i, int c) { return particles::seen(s, landmarks, i, c); });
    team.each(p.num_adversaries, [=](int i) {
      const wd::ObservationRow velocity = obs.row(i) + 2 * pairs;
      velocity[0] = s.vx[agents - 1], velocity[1] = s.vy[agents - 1];
    });
  }

 private:
  // Absolute coordinates at which the cost of being outside begins, and at which it reaches 1.
  static constexpr float kFree = 0.9f, kEdge = 1.0f;

  WD_FN static float size(const Params& p, int agent) {
    return agent < p.num_adversaries ? p.adversary_size : p.good_agent_size;
  }

  // Force between two bodies, divided by their distance. The force is proportional to a soft maximum of the
  // overlap and 0, which is log(1 + e^overlap) in units of the margin. At 17 margins apart, 1 + e^-17 rounds
  // to 1 in float and the force is 0. Two bodies at the same position have no direction to push in, so the
  // force is 0.
  WD_FN static float contact(const Params& p, float square, float touching) {
    const float reach = touching + 17.0f * p.contact_margin;
    if (square > reach * reach || square == 0.0f) return 0.0f;
    const float distance = wd::sqrt(square);
    const float overlap = (touching - distance) / p.contact_margin;
    const float softened = wd::max(overlap, 0.0f) + wd::log(1.0f + wd::exp(-wd::abs(overlap)));
    return p.contact_force * (softened * p.contact_margin) / distance;
  }

  // Cost of one coordinate to a good agent, by its absolute value.
  WD_FN static float cost_outside(float v) {
    if (v < kEdge) return v < kFree ? 0.0f : (v - kFree) * 10.0f;
    return wd::min(wd::exp(2.0f * v - 2.0f), 10.0f);
  }
};
