// crowd.cu: a game whose kind of actions, and whether choices can be forbidden, are parameters, so that one
// game trains with every feature.
#include <wd/env.h>
#include <wd/others.h>

struct Crowd {
  enum Kind { kChoice, kHeads, kBox };

  struct Params {
    int kind = kChoice;
    bool masks = false;
    void describe(auto&& field) {
      field.choice("kind", kind, {"choice", "heads", "box"}, "of actions: one choice, several, or numbers");
      field("masks", masks, "forbid choice 0 of each head in odd steps");
    }
  };

  struct State {
    wd::PerAgent<float> place;
    wd::PerReplica<float> spread;
    wd::Scratch<float> features;  // [kFeatures, kAgents]
    void describe(auto&& field) {
      field("place", place), field("spread", spread), field("features", features, kFeatures * kAgents);
    }
  };

  static constexpr int kFew = 2, kMany = 3, kAgents = kFew + kMany, kTimeLimit = 8;
  static constexpr int kFeatures = 2;

  static wd::Spec spec(const Params& p) {
    const auto action = p.kind == kChoice  ? wd::ActionSpace::discrete({3}, {"way"})
                        : p.kind == kHeads ? wd::ActionSpace::discrete({3, 2}, {"way", "call"})
                                           : wd::ActionSpace::box(2, -1.0f, 1.0f, {"way", "call"});
    const std::vector<wd::ObservationPart> seen = {
        {"place", kAgents - 1}, {"is_one_of_many", kAgents - 1}, {"time", 1}};
    // Everyone is on a diagonal.
    const wd::Entities others = {{{.name = "others",
                                   .count = kAgents - 1,
                                   .x = {"place"},
                                   .y = {"place"},
                                   .kind = {"is_one_of_many"},
                                   .kinds = 2}}};
    return {.roles = {{"few", kFew, seen, action, p.masks, others},
                      {"many", kMany, seen, action, p.masks, others}},
            .time_limit = kTimeLimit,
            .statistics = {{"spread", "sum of the places", ""}},
            .table = table(),
            .streams = {{"places", wd::StreamSpec::kReplica, {kAgents}}}};
  }

  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random random) {
    team.each(kAgents, [=, &s](int i) { s.place[i] = random.uniform(i, 0); });
    team.once([&s] { s.spread = 0.0f; });
  }

  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random, wd::Outcome& out) {
    team.each(kAgents, [=, &s, &out](int i) {
      const float way =
          p.kind == kBox ? a.continuous(i, 0) - a.continuous(i, 1) : static_cast<float>(a.discrete(i, 0));
      const float call = p.kind == kHeads ? static_cast<float>(a.discrete(i, 1)) : 0.0f;
      s.place[i] = 0.9f * s.place[i] + 0.1f * way;
      out.reward(i) = s.place[i] - call;
    });
    const float sum = team.sum(kAgents, [=, &s](int i) { return s.place[i]; });
    team.once([=, &s] { s.spread = sum; });
  }

  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    team.each(kAgents, [=](int i) {
      s.features[0 * kAgents + i] = s.place[i];
      s.features[1 * kAgents + i] = i < kFew ? 0.0f : 1.0f;
    });
    const int t = team.t();
    wd::observe_others(
        team, obs, kAgents, table(), &s.features[0], [](int) { return true; },
        [=](int, int) { return static_cast<float>(t) / static_cast<float>(kTimeLimit); });
    if (!p.masks) return;
    const int choices = p.kind == kHeads ? 5 : 3;
    team.each_pair(kAgents, choices,
                   [=](int i, int k) { obs.action_mask(i)[k] = t % 2 == 1 && k % 3 == 0 ? 0 : 1; });
  }

  WD_FN static void streams(auto& team, const Params&, const State& s, wd::Streams rows) {
    float* const row = rows.of_replica<float>(0);
    team.each(kAgents, [=](int i) { row[i] = s.place[i]; });
  }

 private:
  WD_FN static wd::ObservationTable table() { return {.features = kFeatures, .relative = 1, .own = 1}; }
};
