// simple_adversary.cu: good agents know which landmark is the goal, and want one of them to be near it. An
// adversary, which does not know it, wants to be near it too.
//
// The game is "physical deception" of the multi-agent particle environments (Lowe et al., "Multi-agent
// actor-critic for mixed cooperative-competitive environments", NeurIPS 2017), as mpe2's simple_adversary_v3
// has it (tests/envs/simple_adversary_oracle_test.py).
#include <wd/env.h>

#include <numeric>
#include <utility>
#include <vector>

#include "particles.h"

struct SimpleAdversary {
  struct Params {
    int num_good_agents = 2, episode_length = 25;
    particles::Motion motion;

    void describe(auto&& field) {
      field("num_good_agents", num_good_agents, {1, 1023}, "good agents; there are as many landmarks");
      field("episode_length", episode_length, {1, 1e6}, "steps after which the episode is truncated");
      motion.describe(field);
    }
  };

  enum Purpose { kX, kY, kLandmarkX, kLandmarkY, kGoal };  // what each random draw is for

  struct State {
    wd::PerAgent<float> x, y, vx, vy;  // the adversary is agent 0
    wd::Array<float> landmark_x, landmark_y;
    wd::PerReplica<int> goal;              // a landmark
    wd::PerReplica<float> goal_x, goal_y;  // follow from goal
    // From the adversary, and from the nearest good agent, to the goal, after the step.
    wd::PerReplica<float> adversary_distance, agent_distance;

    void describe(auto&& field, const Params& p) {
      const int landmarks = p.num_good_agents;
      field("x", x), field("y", y), field("vx", vx), field("vy", vy);
      field("landmark_x", landmark_x, landmarks), field("landmark_y", landmark_y, landmarks);
      field("goal", goal), field("goal_x", goal_x), field("goal_y", goal_y);
      field("adversary_distance", adversary_distance), field("agent_distance", agent_distance);
    }
  };

  static wd::Spec spec(const Params& p) {
    const int good = p.num_good_agents, landmarks = p.num_good_agents;
    const auto action = wd::ActionSpace::discrete({5}, {"move"});
    // The positions of `count` things in a part, from the first on.
    const auto positions = [](const char* name, const char* part, int first, int count) {
      return wd::EntityList{
          .name = name, .count = count, .x = {part, 2 * first, 2}, .y = {part, 2 * first + 1, 2}};
    };
    return {.roles = {{.name = "adversary",
                       .observation = {{"landmarks", 2 * landmarks}, {"others", 2 * good}},
                       .action = action,
                       .entities = {{positions("landmarks", "landmarks", 0, landmarks),
                                     positions("agents", "others", 0, good)}}},
                      {.name = "agent",
                       .count = good,
                       .observation = {{"goal", 2}, {"landmarks", 2 * landmarks}, {"others", 2 * good}},
                       .action = action,
                       .entities = {{positions("landmarks", "landmarks", 0, landmarks),
                                     positions("adversary", "others", 0, 1),
                                     positions("agents", "others", 1, good - 1)}}}},
            .time_limit = p.episode_length,
            .statistics = {{"adversary_distance", "from the adversary to the goal, at the end", ""},
                           {"agent_distance", "from the nearest good agent to the goal, at the end", ""}},
            .streams = {{"state", wd::StreamSpec::kReplica, {4 * (good + 1) + 2 * landmarks + 2}}},
            .drawing = {.left = -1.5,
                        .bottom = -1.5,
                        .right = 1.5,
                        .top = 1.5,
                        .shapes = {wd::drawing::circle("x", "y", 0.15),  // would hide landmarks
                                   wd::drawing::circle("goal_x", "goal_y", 0.12),
                                   wd::drawing::circle("landmark_x", "landmark_y", 0.08)}}};
  }

  WD_FN static void reset(auto& team, const Params& p, State& s, wd::Random random) {
    team.each(p.num_good_agents + 1, [=, &s](int i) {
      s.x[i] = random.uniform(i, kX, -1.0f, 1.0f);
      s.y[i] = random.uniform(i, kY, -1.0f, 1.0f);
      s.vx[i] = s.vy[i] = 0.0f;
    });
    team.each(p.num_good_agents, [=, &s](int l) {
      s.landmark_x[l] = random.uniform(l, kLandmarkX, -1.0f, 1.0f);
      s.landmark_y[l] = random.uniform(l, kLandmarkY, -1.0f, 1.0f);
    });
    team.once([=, &s] {
      s.goal = random.integer(0, kGoal, p.num_good_agents);
      s.adversary_distance = 0.0f, s.agent_distance = 0.0f;
    });
    derive(team, p, s);
  }

  WD_FN static void derive(auto& team, const Params&, State& s) {
    team.once([&] { s.goal_x = s.landmark_x[s.goal], s.goal_y = s.landmark_y[s.goal]; });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    const int agents = p.num_good_agents + 1;
    team.each(agents, [=, &s](int i) { p.motion.move(a.discrete(i, 0), s.x[i], s.y[i], s.vx[i], s.vy[i]); });
    const auto to_goal = [=, &s](int i) {
      const float dx = s.x[i] - s.goal_x, dy = s.y[i] - s.goal_y;
      return wd::sqrt(dx * dx + dy * dy);
    };
    const float nearest = team.min(p.num_good_agents, [=](int g) { return to_goal(1 + g); });
    team.once([=, &s] { s.adversary_distance = to_goal(0), s.agent_distance = nearest; });
    team.each(agents, [=, &s, &out](int i) {
      out.reward(i) = i == 0 ? -s.adversary_distance : s.adversary_distance - s.agent_distance;
    });
  }

  // Good agents share out all landmarks so that the sum of squared distances is small. The adversary goes to
  // the landmark that a good agent is nearest to.
  static void scripted(const Params& p, const State& s, int agent, wd::ScriptedAction& action) {
    const auto far = [&](int good, int l) {
      const float dx = s.landmark_x[l] - s.x[1 + good], dy = s.landmark_y[l] - s.y[1 + good];
      return dx * dx + dy * dy;
    };
    const int good = p.num_good_agents;
    std::vector<int> target(static_cast<std::size_t>(good));
    std::iota(target.begin(), target.end(), 0);
    for (int pass = 0; pass < 2; ++pass) {
      for (int i = 0; i < good; ++i) {
        for (int j = 0; j < i; ++j) {
          int &of_i = target[static_cast<std::size_t>(i)], &of_j = target[static_cast<std::size_t>(j)];
          if (far(i, of_j) + far(j, of_i) < far(i, of_i) + far(j, of_j)) std::swap(of_i, of_j);
        }
      }
    }
    const auto least = [&](int l) {
      float distance = far(0, l);
      for (int i = 1; i < good; ++i) distance = wd::min(distance, far(i, l));
      return distance;
    };
    int shown = 0;
    for (int l = 1; l < good; ++l) shown = least(l) < least(shown) ? l : shown;
    const int l = agent == 0 ? shown : target[static_cast<std::size_t>(agent - 1)];
    action.discrete(0, p.motion.toward(s.landmark_x[l] - s.x[agent], s.landmark_y[l] - s.y[agent],
                                       s.vx[agent], s.vy[agent]));
  }

  // Rows of good agents begin with the goal, which the adversary does not see.
  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    const int good = p.num_good_agents, landmarks = p.num_good_agents;
    team.each(good,
              [=](int g) { obs(1 + g, 0) = s.goal_x - s.x[1 + g], obs(1 + g, 1) = s.goal_y - s.y[1 + g]; });
    team.each_pair(good + 1, landmarks + good, [=](int i, int c) {
      const int k = c - landmarks, j = k < i ? k : k + 1;  // others in order of id
      const wd::ObservationRow pair = obs.row(i) + (2 * c + (i == 0 ? 0 : 2));
      pair[0] = (c < landmarks ? s.landmark_x[c] : s.x[j]) - s.x[i];
      pair[1] = (c < landmarks ? s.landmark_y[c] : s.y[j]) - s.y[i];
    });
  }

  // The whole state: x of all agents, then y and the velocities; x and y of all landmarks; x and y of the
  // goal.
  WD_FN static void streams(auto& team, const Params& p, const State& s, wd::Streams rows) {
    const int agents = p.num_good_agents + 1, landmarks = p.num_good_agents;
    float* const row = rows.of_replica<float>(0);
    team.each_pair(4, agents, [=](int c, int i) {
      row[c * agents + i] = c == 0 ? s.x[i] : c == 1 ? s.y[i] : c == 2 ? s.vx[i] : s.vy[i];
    });
    team.each(landmarks, [=](int l) {
      float* const of_landmark = row + 4 * agents;
      of_landmark[l] = s.landmark_x[l], of_landmark[landmarks + l] = s.landmark_y[l];
    });
    team.once([=] {
      float* const of_goal = row + 4 * agents + 2 * landmarks;
      of_goal[0] = s.goal_x, of_goal[1] = s.goal_y;
    });
  }
};
