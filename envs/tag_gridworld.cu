// tag_gridworld.cu: taggers hunt one runner on a grid of cells; one tag ends the game. The rules are those of
// WarpDrive's TagGridWorld (tests/envs/tag_gridworld_oracle_test.py).
#include <wd/env.h>

struct TagGridworld {
  enum Start { kCorner, kRandom };

  struct Params {
    int num_taggers = 10, grid_length = 10, episode_length = 100;
    float wall_hit_penalty = 0.1f, tag_reward_for_tagger = 10.0f, tag_penalty_for_runner = 2.0f,
          step_cost_for_tagger = 0.01f;
    bool use_full_observation = true;
    int start = kCorner;

    void describe(auto&& field) {
      field("num_taggers", num_taggers, {1, 16384}, "agents that chase; the runner is the last agent");
      field("grid_length", grid_length, {1, 1e6}, "cells are numbered from 0 to this");
      field("episode_length", episode_length, {1, 1e6}, "steps of an episode");
      field("wall_hit_penalty", wall_hit_penalty, {0.0, 1e6}, "cost of moving against a wall");
      field("tag_reward_for_tagger", tag_reward_for_tagger, {0.0, 1e6}, "reward of every tagger for the tag");
      field("tag_penalty_for_runner", tag_penalty_for_runner, {0.0, 1e6}, "cost of being tagged");
      field("step_cost_for_tagger", step_cost_for_tagger, {0.0, 1e6},
            "cost of a step without a tag; the runner's gain");
      field("use_full_observation", use_full_observation, "see all agents, or only the nearest opponent");
      field.choice("start", start, {"corner", "random"},
                   "taggers begin at the center, or on any inner cell; the runner at (0, 0)");
    }
  };

  enum Purpose { kX, kY };  // what each random draw is for

  struct State {
    wd::PerAgent<int> x, y;
    wd::PerReplica<int> caught;
    void describe(auto&& field) { field("x", x), field("y", y), field("caught", caught); }
  };

  static wd::Spec spec(const Params& p) {
    const int agents = p.num_taggers + 1;
    const std::vector<wd::ObservationPart> full = {
        {"x", agents}, {"y", agents}, {"is_runner", agents}, {"is_self", agents}, {"time"}};
    const std::vector<wd::ObservationPart> partial = {{"own_x"},      {"own_y"},     {"opponent_x"},
                                                      {"opponent_y"}, {"is_runner"}, {"time"}};
    const auto& observation = p.use_full_observation ? full : partial;
    const auto action = wd::ActionSpace::discrete({5}, {"move"});
    // Where each move leads: x and y.
    const wd::ChoiceFeatures moves = {.size = 2, .fixed = {0, 0, 1, 0, -1, 0, 0, 1, 0, -1}};
    return {.roles = {{.name = "tagger",
                       .count = p.num_taggers,
                       .observation = observation,
                       .action = action,
                       .choice_features = moves},
                      {.name = "runner",
                       .count = 1,
                       .observation = observation,
                       .action = action,
                       .choice_features = moves}},
            .time_limit = p.episode_length,
            .at_time_limit = wd::AtTimeLimit::kTerminates,
            .statistics = {{"caught", "1 where the runner was tagged", ""}},
            .drawing = {.left = -0.5,
                        .bottom = -0.5,
                        .right = p.grid_length + 0.5,
                        .top = p.grid_length + 0.5,
                        .shapes = {wd::drawing::circle("x", "y", 0.35)},
                        .grid = 1.0}};
  }

  WD_FN static void reset(auto& team, const Params& p, State& s, wd::Random random) {
    team.each(p.num_taggers + 1, [=, &s](int i) {
      const auto inner_cell = [&](Purpose purpose) {
        return 1 + random.integer(i, purpose, wd::max(p.grid_length - 1, 1));
      };
      const bool is_runner = i == p.num_taggers;
      s.x[i] = is_runner ? 0 : p.start == kRandom ? inner_cell(kX) : p.grid_length / 2;
      s.y[i] = is_runner ? 0 : p.start == kRandom ? inner_cell(kY) : p.grid_length / 2;
    });
    team.once([&] { s.caught = 0; });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    const int runner = p.num_taggers;
    team.each(p.num_taggers + 1, [=, &s, &out](int i) {  // stay, x + 1, x - 1, y + 1, y - 1
      const int move = a.discrete(i, 0);
      const int x = s.x[i] + (move == 1 ? 1 : 0) - (move == 2 ? 1 : 0),
                y = s.y[i] + (move == 3 ? 1 : 0) - (move == 4 ? 1 : 0);
      s.x[i] = wd::clamp(x, 0, p.grid_length);
      s.y[i] = wd::clamp(y, 0, p.grid_length);
      out.reward(i) = s.x[i] != x || s.y[i] != y ? -p.wall_hit_penalty : 0.0f;
    });
    const bool tagged =
        team.any(p.num_taggers, [=, &s](int i) { return s.x[i] == s.x[runner] && s.y[i] == s.y[runner]; });
    const float tagger_gets = tagged ? p.tag_reward_for_tagger : -p.step_cost_for_tagger;
    const float runner_gets = tagged ? -p.tag_penalty_for_runner : p.step_cost_for_tagger;
    team.each(p.num_taggers + 1,
              [=, &out](int i) { out.reward(i) += i == runner ? runner_gets : tagger_gets; });
    team.once([=, &s, &out] {
      s.caught = tagged ? 1 : 0;
      if (tagged) out.terminate();
    });
  }

  // Taggers step toward the runner, and the runner away from its nearest tagger. Ties go to the first move.
  static void scripted(const Params& p, const State& s, int agent, wd::ScriptedAction& action) {
    const bool is_runner = agent == p.num_taggers;
    const int other = is_runner ? nearest_tagger(p, s) : p.num_taggers;
    const auto distance_after = [&](int move) {
      const std::int64_t x = wd::clamp(s.x[agent] + (move == 1) - (move == 2), 0, p.grid_length),
                         y = wd::clamp(s.y[agent] + (move == 3) - (move == 4), 0, p.grid_length);
      return (x - s.x[other]) * (x - s.x[other]) + (y - s.y[other]) * (y - s.y[other]);
    };
    int best = 0;
    for (int move = 1; move < 5; ++move) {
      const std::int64_t gain = distance_after(move) - distance_after(best);
      if (is_runner ? gain > 0 : gain < 0) best = move;
    }
    action.discrete(0, best);
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    const int agents = p.num_taggers + 1, runner = p.num_taggers;
    const float length = static_cast<float>(p.grid_length);
    const float time = static_cast<float>(team.t()) / static_cast<float>(p.episode_length);
    const auto write_place = [=](wd::ObservationRow row, int stride, int of) {
      row[0] = static_cast<float>(s.x[of]) / length;
      row[stride] = static_cast<float>(s.y[of]) / length;
    };
    if (p.use_full_observation) {
      team.each_pair(agents, agents, [=](int i, int j) {
        const wd::ObservationRow row = obs.row(i) + j;
        write_place(row, agents, j);
        row[2 * agents] = j == runner ? 1.0f : 0.0f;
        row[3 * agents] = j == i ? 1.0f : 0.0f;
        if (j == runner) row[3 * agents + 1] = time;  // the entry after the runner's
      });
    } else {
      team.each(agents, [=](int i) {
        const wd::ObservationRow row = obs.row(i);
        write_place(row, 1, i);
        write_place(row + 2, 1, i == runner ? nearest_tagger(p, s) : runner);
        row[4] = i == runner ? 1.0f : 0.0f;
        row[5] = time;
      });
    }
  }

 private:
  // Nearest by squared distance; ties go to the lower id.
  WD_FN static int nearest_tagger(const Params& p, const State& s) {
    const int runner = p.num_taggers;
    int nearest = 0;
    std::int64_t least = INT64_MAX;
    for (int i = 0; i < p.num_taggers; ++i) {
      const std::int64_t dx = s.x[i] - s.x[runner], dy = s.y[i] - s.y[runner];
      if (dx * dx + dy * dy >= least) continue;
      least = dx * dx + dy * dy;
      nearest = i;
    }
    return nearest;
  }
};
