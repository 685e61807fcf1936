// simple_reference.cu: two agents, each of which must go to a landmark that only the other one knows. Both
// move and speak at once.
//
// The game is "reference" of the multi-agent particle environments (Mordatch and Abbeel, "Emergence of
// grounded compositional language in multi-agent populations", AAAI 2018), as mpe2's simple_reference_v3 has
// it (tests/envs/simple_reference_oracle_test.py).
#include <wd/env.h>

#include "particles.h"

struct SimpleReference {
  struct Params {
    int episode_length = 25;
    float local_ratio = 0.5f;
    particles::Motion motion;

    void describe(auto&& field) {
      field("episode_length", episode_length, {1, 1e6}, "steps after which the episode is truncated");
      field("local_ratio", local_ratio, {0.0, 1.0},
            "weight in an agent's reward of the distance of the other, which it guides; the rest is that of "
            "the mean");
      motion.describe(field);
    }
  };

  static constexpr int kNumAgents = 2, kLandmarks = 3, kWords = 10;
  enum Purpose { kX, kY, kLandmarkX, kLandmarkY, kGoal };  // what each random draw is for

  struct State {
    wd::PerAgent<float> x, y, vx, vy;
    wd::PerAgent<int> goal;              // landmark that the agent must go to, which the other agent sees
    wd::PerAgent<int> message;           // the agent's last word; -1 before the first
    wd::PerAgent<float> goal_x, goal_y;  // follow from goal
    wd::PerAgent<float> distance;        // to its goal, after the step
    wd::Array<float> landmark_x, landmark_y;

    void describe(auto&& field, const Params&) {
      field("x", x), field("y", y), field("vx", vx), field("vy", vy);
      field("goal", goal), field("message", message);
      field("goal_x", goal_x), field("goal_y", goal_y), field("distance", distance);
      field("landmark_x", landmark_x, kLandmarks), field("landmark_y", landmark_y, kLandmarks);
    }
  };

  static wd::Spec spec(const Params& p) {
    return {.roles = {{.name = "agent",
                       .count = kNumAgents,
                       .observation = {{"own_velocity", 2},
                                       {"landmarks", 2 * kLandmarks},
                                       {"others_goal_color", kLandmarks},
                                       {"message", kWords}},
                       .action = wd::ActionSpace::discrete({5, kWords}, {"move", "message"})}},
            .time_limit = p.episode_length,
            .statistics = {{"distance", "from an agent to its goal, at the end", "agent"}},
            .streams = {{"state", wd::StreamSpec::kReplica, {kNumAgents * kOfAgent + 2 * kLandmarks}}},
            .drawing = {.left = -1.5,
                        .bottom = -1.5,
                        .right = 1.5,
                        .top = 1.5,
                        .shapes = {wd::drawing::circle("goal_x", "goal_y", 0.1),
                                   wd::drawing::circle("landmark_x", "landmark_y", 0.05),
                                   wd::drawing::circle("x", "y", 0.05)}}};
  }

  WD_FN static void reset(auto& team, const Params& p, State& s, wd::Random random) {
    team.each(kNumAgents, [=, &s](int i) {
      s.x[i] = random.uniform(i, kX, -1.0f, 1.0f);
      s.y[i] = random.uniform(i, kY, -1.0f, 1.0f);
      s.vx[i] = s.vy[i] = s.distance[i] = 0.0f;
      s.goal[i] = random.integer(i, kGoal, kLandmarks);
      s.message[i] = -1;
    });
    team.each(kLandmarks, [=, &s](int l) {
      s.landmark_x[l] = random.uniform(l, kLandmarkX, -1.0f, 1.0f);
      s.landmark_y[l] = random.uniform(l, kLandmarkY, -1.0f, 1.0f);
    });
    derive(team, p, s);
  }

  WD_FN static void derive(auto& team, const Params&, State& s) {
    team.each(kNumAgents, [=, &s](int i) {
      s.goal_x[i] = s.landmark_x[s.goal[i]], s.goal_y[i] = s.landmark_y[s.goal[i]];
    });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.each(kNumAgents, [=, &s](int i) {
      p.motion.move(a.discrete(i, 0), s.x[i], s.y[i], s.vx[i], s.vy[i]);
      s.message[i] = a.discrete(i, 1);
      const float dx = s.x[i] - s.goal_x[i], dy = s.y[i] - s.goal_y[i];
      s.distance[i] = wd::sqrt(dx * dx + dy * dy);
    });
    team.each(kNumAgents, [=, &s, &out](int i) {
      const float guided = s.distance[1 - i], mean = (s.distance[0] + s.distance[1]) / 2.0f;
      out.reward(i) = -(1.0f - p.local_ratio) * mean - p.local_ratio * guided;
    });
  }

  // Each says the number of the other's goal, and goes to the landmark with the number that it heard.
  static void scripted(const Params& p, const State& s, int agent, wd::ScriptedAction& action) {
    const int l = s.message[1 - agent];
    action.discrete(1, s.goal[1 - agent]);
    if (l < 0 || l >= kLandmarks) return;
    action.discrete(0, p.motion.toward(s.landmark_x[l] - s.x[agent], s.landmark_y[l] - s.y[agent],
                                       s.vx[agent], s.vy[agent]));
  }

  WD_FN static void observe(auto& team, const Params&, const State& s, wd::Observations obs) {
    constexpr int kGoalAt = 2 + 2 * kLandmarks, kMessageAt = kGoalAt + kLandmarks;
    team.each_pair(kNumAgents, kMessageAt + kWords, [=](int i, int k) {
      const int other = 1 - i, l = (k - 2) / 2;
      obs(i, k) = k == 0            ? s.vx[i]
                  : k == 1          ? s.vy[i]
                  : k >= kMessageAt ? one_hot(s.message[other], k - kMessageAt)
                  : k >= kGoalAt    ? (s.goal[other] == k - kGoalAt ? 0.75f : 0.25f)  // a color
                  : k % 2 == 0      ? s.landmark_x[l] - s.x[i]
                                    : s.landmark_y[l] - s.y[i];
    });
  }

  // The whole state: of each agent x, y, velocity, and, one-hot, goal and last message; then x and y of all
  // landmarks.
  WD_FN static void streams(auto& team, const Params&, const State& s, wd::Streams rows) {
    float* const row = rows.of_replica<float>(0);
    team.each_pair(kNumAgents, kOfAgent, [=](int i, int k) {
      row[i * kOfAgent + k] = k == 0               ? s.x[i]
                              : k == 1             ? s.y[i]
                              : k == 2             ? s.vx[i]
                              : k == 3             ? s.vy[i]
                              : k < 4 + kLandmarks ? one_hot(s.goal[i], k - 4)
                                                   : one_hot(s.message[i], k - 4 - kLandmarks);
    });
    team.each(kLandmarks, [=](int l) {
      float* const place = row + kNumAgents * kOfAgent + 2 * l;
      place[0] = s.landmark_x[l], place[1] = s.landmark_y[l];
    });
  }

 private:
  static constexpr int kOfAgent = 4 + kLandmarks + kWords;  // entries of an agent in the stream

  WD_FN static float one_hot(int value, int k) { return k == value ? 1.0f : 0.0f; }
};
