// tag_continuous.cu: taggers chase runners on a square plane; all agents steer by choosing an acceleration
// and a turn.
//
// The rules are those of WarpDrive's TagContinuous. The operations and their order follow its float32
// arithmetic, so that whole episodes agree with it (tests/envs/tag_continuous_oracle_test.py).
#include <wd/env.h>
#include <wd/others.h>

struct TagContinuous {
  struct Params {
    int num_taggers = 1, num_runners = 10;
    float grid_length = 10.0f;
    int episode_length = 100;
    float max_speed = 1.0f, skill_level_tagger = 1.0f, skill_level_runner = 1.0f;
    float max_acceleration = 1.0f, min_acceleration = -1.0f, max_turn = 0.5f * wd::kPi,
          min_turn = -0.5f * wd::kPi;
    int num_acceleration_levels = 10, num_turn_levels = 10;
    float edge_hit_penalty = 0.0f;
    bool use_full_observation = true, observe_self = false;
    int num_other_agents_observed = 2;
    float tagging_distance = 0.01f, tag_reward_for_tagger = 1.0f, tag_penalty_for_runner = -1.0f;
    float step_penalty_for_tagger = 0.0f, step_reward_for_runner = 0.0f, end_of_game_reward_for_runner = 1.0f;
    bool runner_exits_game_after_tagged = true;

    void describe(auto&& field) {
      field("num_taggers", num_taggers, {1, 16384}, "agents that chase; their ids come first");
      field("num_runners", num_runners, {1, 16384}, "agents that flee");
      field("grid_length", grid_length, wd::above(0.0, 1e4), "side of the square");
      field("episode_length", episode_length, {1, 1e6}, "steps of an episode");
      field("max_speed", max_speed, wd::above(0.0, 1e4), "maximum distance moved per step");
      field("skill_level_tagger", skill_level_tagger, {0.0, 1e3}, "multiplies max_speed of taggers");
      field("skill_level_runner", skill_level_runner, {0.0, 1e3}, "multiplies max_speed of runners");
      field("max_acceleration", max_acceleration, {-1e4, 1e4}, "maximum change of acceleration per step");
      field("min_acceleration", min_acceleration, {-1e4, 1e4}, "minimum change of acceleration per step");
      field("max_turn", max_turn, {-100.0, 100.0}, "maximum turn per step [rad]");
      field("min_turn", min_turn, {-100.0, 100.0}, "minimum turn per step [rad]");
      field("num_acceleration_levels", num_acceleration_levels, {0, 1000},
            "choices between the two, besides 'none'");
      field("num_turn_levels", num_turn_levels, {0, 1000}, "choices between the two, besides 'none'");
      field("edge_hit_penalty", edge_hit_penalty, {-1e6, 0.0}, "reward for running into the edge");
      field("use_full_observation", use_full_observation, "see all other agents, or only the nearest");
      field("num_other_agents_observed", num_other_agents_observed, {1, 32768},
            "how many nearest agents are seen then");
      field("observe_self", observe_self,
            "see the own heading (cosine, sine), speed and position, which WarpDrive's observation lacks");
      field("tagging_distance", tagging_distance, {0.0, 1.0},
            "reach of a tagger, as a fraction of grid_length");
      field("tag_reward_for_tagger", tag_reward_for_tagger, {0.0, 1e6}, "reward for every runner tagged");
      field("tag_penalty_for_runner", tag_penalty_for_runner, {-1e6, 0.0}, "reward for being tagged");
      field("step_penalty_for_tagger", step_penalty_for_tagger, {-1e6, 0.0}, "reward of every step");
      field("step_reward_for_runner", step_reward_for_runner, {0.0, 1e6}, "reward of every step");
      field("end_of_game_reward_for_runner", end_of_game_reward_for_runner, {0.0, 1e6},
            "reward for staying to the end");
      field("runner_exits_game_after_tagged", runner_exits_game_after_tagged,
            "whether tagged runners leave the game");
    }
  };

  enum Purpose { kX, kY, kDirection };  // what each random draw is for

  struct State {
    wd::PerAgent<float> x, y, speed, direction, acceleration;
    wd::PerAgent<int> in_game, seen;  // current, and as last observed, before tags take effect
    wd::PerAgent<int> survival;       // steps in the game
    wd::PerReplica<int> tags;
    wd::Scratch<int> captures, neighbor;     // [taggers]: tags in this step; [observed, agents]
    wd::Scratch<float> features, distances;  // [kFeatures, agents]; for wd::find_nearest()

    void describe(auto&& field, const Params& p) {
      field("x", x), field("y", y), field("speed", speed), field("direction", direction);
      field("acceleration", acceleration), field("in_game", in_game), field("seen", seen);
      field("survival", survival), field("tags", tags);
      const int agents = p.num_taggers + p.num_runners,
                observed = p.use_full_observation ? 0 : p.num_other_agents_observed;
      field("captures", captures, p.num_taggers), field("neighbor", neighbor, observed * agents);
      field("features", features, kFeatures * agents);
      field("distances", distances, observed > 0 ? agents * wd::kNearestBatch : 0);
    }
  };

  static wd::Spec spec(const Params& p) {
    const int agents = p.num_taggers + p.num_runners;
    const auto at_most = [](const char* name, auto value, auto bound, const char* what) {
      if (value > bound)
        throw wd::UsageError(wd::concat("env.", name, " = ", value, ": must be at most ", bound, ", ", what));
    };
    at_most("min_acceleration", p.min_acceleration, p.max_acceleration, "env.max_acceleration");
    at_most("min_turn", p.min_turn, p.max_turn, "env.max_turn");
    if (!p.use_full_observation)
      at_most("num_other_agents_observed", p.num_other_agents_observed, agents, "the number of agents");
    const int others = p.use_full_observation ? agents - 1 : p.num_other_agents_observed;
    std::vector<wd::ObservationPart> observation = {
        {"x", others},         {"y", others},         {"speed", others},   {"acceleration", others},
        {"direction", others}, {"is_tagger", others}, {"in_game", others}, {"time", 1}};
    wd::Entities entities = {{{.name = "agents",
                               .count = others,
                               .x = {"x"},
                               .y = {"y"},
                               .heading = {"direction"},
                               .kind = {"is_tagger"},
                               .kinds = 2,
                               .presence = {"in_game"},
                               .features = {{"speed"}, {"acceleration"}}}}};
    if (p.observe_self) {
      for (const char* name : {"heading_cos", "heading_sin", "own_speed", "own_x", "own_y"})
        observation.push_back({name});
      entities.heading_cos = {"heading_cos"};
      entities.heading_sin = {"heading_sin"};
    }
    const auto action = wd::ActionSpace::discrete({p.num_acceleration_levels + 1, p.num_turn_levels + 1},
                                                  {"acceleration", "turn"});
    const auto role = [&](const char* name, int count) {
      return wd::Role{
          .name = name, .count = count, .observation = observation, .action = action, .entities = entities};
    };
    return {.roles = {role("tagger", p.num_taggers), role("runner", p.num_runners)},
            .time_limit = p.episode_length,
            .at_time_limit = wd::AtTimeLimit::kTerminates,
            .statistics = {{"tags", "runners tagged in the episode", ""},
                           {"survival", "steps in the game", "runner"}},
            .table = p.use_full_observation ? table(p) : wd::ObservationTable{},
            .drawing = {.right = p.grid_length,
                        .top = p.grid_length,
                        .shapes = {wd::drawing::circle("x", "y", 0.01 * p.grid_length).facing("direction")}}};
  }

  WD_FN static void reset(auto& team, const Params& p, State& s, wd::Random random) {
    team.each(p.num_taggers + p.num_runners, [=, &s](int i) {
      s.x[i] = random.uniform(i, kX) * p.grid_length;
      s.y[i] = random.uniform(i, kY) * p.grid_length;
      s.direction[i] = static_cast<float>(random.integer(i, kDirection, 4)) * (0.5f * wd::kPi);
      s.speed[i] = s.acceleration[i] = 0.0f;
      s.in_game[i] = 1;
      s.survival[i] = 0;
    });
    team.once([&] { s.tags = 0; });
  }

  WD_FN static void derive(auto& team, const Params& p, State& s) {
    team.each(p.num_taggers + p.num_runners, [=, &s](int i) { s.seen[i] = s.in_game[i]; });
  }

  WD_FN static bool in_game(const Params&, const State& s, int agent) { return s.in_game[agent] != 0; }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.each(p.num_taggers + p.num_runners, [=, &s, &out](int i) {  // move
      const bool is_tagger = i < p.num_taggers;
      const float playing = static_cast<float>(s.in_game[i]);
      const float top = p.max_speed * (is_tagger ? p.skill_level_tagger : p.skill_level_runner);
      const float acceleration = s.acceleration[i] + level(a.discrete(i, 0), p.num_acceleration_levels,
                                                           p.min_acceleration, p.max_acceleration);
      const float turn = level(a.discrete(i, 1), p.num_turn_levels, p.min_turn, p.max_turn);
      const float direction = wd::wrap(s.direction[i] + turn, 2.0f * wd::kPi) * playing;
      const float speed = wd::clamp(s.speed[i] + acceleration, 0.0f, top) * playing;
      const wd::SinCos heading = wd::sincos(direction);
      const float x = s.x[i] + speed * heading.cos, y = s.y[i] + speed * heading.sin;
      s.x[i] = wd::clamp(x, 0.0f, p.grid_length);
      s.y[i] = wd::clamp(y, 0.0f, p.grid_length);
      s.direction[i] = direction;
      s.speed[i] = speed;
      s.acceleration[i] = speed > 0.0f && speed < top ? acceleration : 0.0f;
      const float edge = s.x[i] != x || s.y[i] != y ? p.edge_hit_penalty : 0.0f;
      out.reward(i) = (edge + (is_tagger ? p.step_penalty_for_tagger : p.step_reward_for_runner)) * playing;
      s.seen[i] = s.in_game[i];
      s.survival[i] += s.in_game[i];
    });
    team.each(p.num_taggers, [=, &s](int k) { s.captures[k] = 0; });

    const float reach = p.tagging_distance * p.grid_length;
    const bool last = team.t() == p.episode_length;
    team.each(p.num_runners, [=, &s, &out, &team](int r) {  // tag
      const int runner = p.num_taggers + r;
      if (s.in_game[runner] == 0) return;
      int tagger = 0;
      float least = distance(s, runner, 0);
      for (int k = 1; k < p.num_taggers; ++k) {
        const float d = distance(s, runner, k);
        tagger = d < least ? k : tagger;
        least = wd::min(d, least);
      }
      if (least < reach) {
        team.add(s.captures[tagger], 1);  // integers: exact in any order
        team.add(s.tags.get(), 1);
        out.reward(runner) += p.tag_penalty_for_runner;
        if (p.runner_exits_game_after_tagged) s.in_game[runner] = 0;
      }
      if (last && s.in_game[runner] != 0) out.reward(runner) += p.end_of_game_reward_for_runner;
    });
    team.each(p.num_taggers, [=, &s, &out](int k) {  // rewards for tags
      out.reward(k) += static_cast<float>(s.captures[k]) * p.tag_reward_for_tagger;
    });
    const bool left = team.any(p.num_runners, [=, &s](int r) { return s.in_game[p.num_taggers + r] != 0; });
    team.once([&] {
      if (!left) out.terminate();
    });
  }

  // Taggers run toward the nearest runner, and runners away from the nearest tagger, at full acceleration.
  static void scripted(const Params& p, const State& s, int agent, wd::ScriptedAction& action) {
    const bool is_tagger = agent < p.num_taggers;
    const int begin = is_tagger ? p.num_taggers : 0,
              end = is_tagger ? p.num_taggers + p.num_runners : p.num_taggers;
    int nearest = -1;
    for (int j = begin; j < end; ++j) {
      if (s.in_game[j] == 0) continue;
      if (nearest < 0 || distance(s, agent, j) < distance(s, agent, nearest)) nearest = j;
    }
    if (nearest < 0) return;
    const float toward = std::atan2(s.y[nearest] - s.y[agent], s.x[nearest] - s.x[agent]);
    const float wanted = (is_tagger ? toward : toward + wd::kPi) - s.direction[agent];
    const auto miss = [&](int choice) {
      const float turn = level(choice, p.num_turn_levels, p.min_turn, p.max_turn);
      return std::abs(std::remainder(wanted - turn, 2.0f * wd::kPi));
    };
    int best = 0;
    for (int choice = 1; choice <= p.num_turn_levels; ++choice) {
      if (miss(choice) < miss(best)) best = choice;
    }
    action.discrete(0, p.num_acceleration_levels);
    action.discrete(1, best);
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    const int agents = p.num_taggers + p.num_runners;
    const int others = p.use_full_observation ? agents - 1 : p.num_other_agents_observed;
    const float per_length = 1.0f / (p.grid_length * 1.41421356f), per_speed = 1.0f / (p.max_speed + 1e-10f);
    const float time = static_cast<float>(team.t()) / static_cast<float>(p.episode_length);
    team.each(agents, [=](int i) {
      s.features[0 * agents + i] = s.x[i] * per_length;
      s.features[1 * agents + i] = s.y[i] * per_length;
      s.features[2 * agents + i] = s.speed[i] * per_speed;
      s.features[3 * agents + i] = s.acceleration[i] * per_speed;
      s.features[4 * agents + i] = s.direction[i] * (0.5f / wd::kPi);
      s.features[5 * agents + i] = i < p.num_taggers ? 1.0f : 0.0f;
      s.features[6 * agents + i] = static_cast<float>(s.seen[i]);
    });
    const auto sees = [=](int i) { return s.seen[i] != 0; };  // agents out of the game see no positions
    const auto own = [=](int i, int k) {  // what only agent i knows: time, and with observe_self itself
      if (!sees(i)) return 0.0f;
      if (k == 0) return time;
      if (k <= 2) {
        const wd::SinCos heading = wd::sincos(s.direction[i]);
        return k == 1 ? heading.cos : heading.sin;
      }
      if (k == 3) return s.speed[i] * per_speed;
      return (k == 4 ? s.x[i] : s.y[i]) * (2.0f / p.grid_length) - 1.0f;  // from the center, in half sides
    };
    if (p.use_full_observation) {
      wd::observe_others(team, obs, agents, table(p), &s.features[0], sees, own);
    } else {
      const int own_entries = table(p).own;
      team.each(agents, [=](int i) {
        for (int k = 0; k < own_entries; ++k) obs(i, kFeatures * others + k) = own(i, k);
      });
      wd::find_nearest(team, agents, others, &s.distances[0], &s.neighbor[0], [=](int i, int j) {
        const float d = distance(s, i, j);
        return (s.seen[i] & s.seen[j]) != 0 ? d : __builtin_inff();
      });
      team.write_parts(obs, agents, kFeatures, others, [=](int i, int f) {
        const float* const values = &s.features[f * agents];
        const float own = f < kRelative ? values[i] : 0.0f;
        return [=](int k) {
          const int j = s.neighbor[k * agents + i];
          return j < 0 ? 0.0f : values[j] - own;
        };
      });
    }
  }

 private:
  // Number of features that each agent sees of every other agent; the first kRelative are relative to its
  // own.
  static constexpr int kFeatures = 7, kRelative = 5;
  WD_FN static wd::ObservationTable table(const Params& p) {
    return {.features = kFeatures, .relative = kRelative, .own = p.observe_self ? 6 : 1};
  }

  // Value of a choice: choice 0 gives 0, choices 1 to `levels` give evenly spaced values from low to high.
  WD_FN static float level(int choice, int levels, float low, float high) {
    const float step = (high - low) / static_cast<float>(wd::max(levels - 1, 1));
    const float value = choice == levels && levels > 1 ? high : static_cast<float>(choice - 1) * step + low;
    return choice == 0 ? 0.0f : value;
  }

  WD_FN static float distance(const State& s, int i, int j) {
    const float dx = s.x[i] - s.x[j], dy = s.y[i] - s.y[j];
    return wd::sqrt(dx * dx + dy * dy);
  }
};
