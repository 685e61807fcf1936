// simple_speaker_listener.cu: a speaker, which cannot move, sees which of three landmarks is the goal. A
// listener hears its word and must go there.
//
// The game is "cooperative communication" of the multi-agent particle environments (Lowe et al., "Multi-agent
// actor-critic for mixed cooperative-competitive environments", NeurIPS 2017), as mpe2's
// simple_speaker_listener_v4 has it (tests/envs/simple_speaker_listener_oracle_test.py).
#include <wd/env.h>

#include "particles.h"

struct SimpleSpeakerListener {
  static constexpr int kNumAgents = 2;

  struct Params {
    int episode_length = 25;
    bool one_role = false;
    particles::Motion motion;

    void describe(auto&& field) {
      field("episode_length", episode_length, {1, 1e6}, "steps after which the episode is truncated");
      field("one_role", one_role,
            "both agents have the same spaces: observations are padded, and a "
            "mask hides choices of the speaker");
      motion.describe(field);
    }
  };

  static constexpr int kSpeaker = 0, kListener = 1;  // ids of agents
  static constexpr int kLandmarks = 3,
                       kSeen = 5 + 2 * kLandmarks;         // kSeen: numbers that the listener observes
  enum Purpose { kX, kY, kLandmarkX, kLandmarkY, kGoal };  // what each random draw is for

  struct State {
    wd::PerAgent<float> x, y, vx, vy;
    wd::Array<float> landmark_x, landmark_y;
    wd::PerReplica<int> goal, message;     // landmarks; message: the last one, -1 before the first
    wd::PerReplica<float> goal_x, goal_y;  // follow from goal
    wd::PerReplica<float> distance;        // from the listener to the goal, after the step

    void describe(auto&& field, const Params&) {
      field("x", x), field("y", y), field("vx", vx), field("vy", vy);
      field("landmark_x", landmark_x, kLandmarks), field("landmark_y", landmark_y, kLandmarks);
      field("goal", goal), field("message", message);
      field("goal_x", goal_x), field("goal_y", goal_y), field("distance", distance);
    }
  };

  static wd::Spec spec(const Params& p) {
    const auto message = wd::ActionSpace::discrete({kLandmarks}, {"message"});
    const auto move = wd::ActionSpace::discrete({5}, {"move"});
    std::vector<wd::Role> roles = {
        {.name = "speaker", .observation = {{"goal_color", kLandmarks}}, .action = message},
        {.name = "listener",
         .observation = {{"own_velocity", 2}, {"landmarks", 2 * kLandmarks}, {"message", kLandmarks}},
         .action = move}};
    if (p.one_role) {
      roles = {{.name = "agent",
                .count = 2,
                .observation = {{"seen", kSeen}, {"is_speaker", 1}},
                .action = wd::ActionSpace::discrete({5}, {"move_or_message"}),
                .action_mask = true}};
    }
    return {.roles = roles,
            .time_limit = p.episode_length,
            .statistics = {{"distance", "from the listener to the goal, at the end", ""}},
            .streams = {{"state", wd::StreamSpec::kReplica, {6 + 4 * kLandmarks}}},
            .drawing = {.left = -1.5,
                        .bottom = -1.5,
                        .right = 1.5,
                        .top = 1.5,
                        .shapes = {wd::drawing::circle("goal_x", "goal_y", 0.1),
                                   wd::drawing::circle("landmark_x", "landmark_y", 0.04),
                                   wd::drawing::circle("x", "y", 0.075)}}};
  }

  WD_FN static void reset(auto& team, const Params& p, State& s, wd::Random random) {
    team.each(2, [=, &s](int i) {
      s.x[i] = random.uniform(i, kX, -1.0f, 1.0f);
      s.y[i] = random.uniform(i, kY, -1.0f, 1.0f);
      s.vx[i] = s.vy[i] = 0.0f;
    });
    team.each(kLandmarks, [=, &s](int l) {
      s.landmark_x[l] = random.uniform(l, kLandmarkX, -1.0f, 1.0f);
      s.landmark_y[l] = random.uniform(l, kLandmarkY, -1.0f, 1.0f);
    });
    team.once([=, &s] {
      s.goal = random.integer(0, kGoal, kLandmarks);
      s.message = -1;
      s.distance = 0.0f;
    });
    derive(team, p, s);
  }

  WD_FN static void derive(auto& team, const Params&, State& s) {
    team.once([&] { s.goal_x = s.landmark_x[s.goal], s.goal_y = s.landmark_y[s.goal]; });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.once([=, &s, &out] {
      const int i = kListener;
      p.motion.move(a.discrete(i, 0), s.x[i], s.y[i], s.vx[i], s.vy[i]);
      s.message = a.discrete(kSpeaker, 0);
      const float dx = s.x[i] - s.goal_x, dy = s.y[i] - s.goal_y;
      s.distance = wd::sqrt(dx * dx + dy * dy);
      out.reward(kSpeaker) = out.reward(kListener) = -(dx * dx + dy * dy);
    });
  }

  // The speaker says the number of the goal. The listener goes to the landmark with the number that it heard.
  static void scripted(const Params& p, const State& s, int agent, wd::ScriptedAction& action) {
    const int l = s.message;
    if (agent == kSpeaker) {
      action.discrete(0, s.goal);
    } else if (l >= 0 && l < kLandmarks) {
      action.discrete(0, p.motion.toward(s.landmark_x[l] - s.x[agent], s.landmark_y[l] - s.y[agent],
                                         s.vx[agent], s.vy[agent]));
    }
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    team.each(kLandmarks, [=](int k) { obs(kSpeaker, k) = k == s.goal ? 0.65f : 0.15f; });  // a color
    team.each(kSeen, [=](int k) {
      const int i = kListener, l = (k - 2) / 2;
      obs(i, k) = k == 0                    ? s.vx[i]
                  : k == 1                  ? s.vy[i]
                  : k >= 2 + 2 * kLandmarks ? one_hot(s.message, k - 2 - 2 * kLandmarks)
                  : k % 2 == 0              ? s.landmark_x[l] - s.x[i]
                                            : s.landmark_y[l] - s.y[i];
    });
    if (!p.one_role) return;
    team.each(kSeen + 1 - kLandmarks,
              [=](int k) { obs(kSpeaker, kLandmarks + k) = kLandmarks + k == kSeen ? 1.0f : 0.0f; });
    team.once([=] { obs(kListener, kSeen) = 0.0f; });
    team.each_pair(2, 5,
                   [=](int i, int k) { obs.action_mask(i)[k] = i == kListener || k < kLandmarks ? 1 : 0; });
  }

  // The whole state: x and y of speaker and listener, the listener's velocity, x and y of all landmarks; then
  // the goal and the last message, one-hot.
  WD_FN static void streams(auto& team, const Params&, const State& s, wd::Streams rows) {
    float* const row = rows.of_replica<float>(0);
    team.each(2, [=](int i) {
      row[2 * i] = s.x[i], row[2 * i + 1] = s.y[i];
      row[4 + i] = i == 0 ? s.vx[kListener] : s.vy[kListener];
    });
    team.each(kLandmarks, [=](int l) {
      float* const of_landmark = row + 6;
      of_landmark[2 * l] = s.landmark_x[l], of_landmark[2 * l + 1] = s.landmark_y[l];
      of_landmark[2 * kLandmarks + l] = one_hot(s.goal, l);
      of_landmark[3 * kLandmarks + l] = one_hot(s.message, l);
    });
  }

 private:
  WD_FN static float one_hot(int value, int k) { return k == value ? 1.0f : 0.0f; }
};
