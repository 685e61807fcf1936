// seen.cu: agents see where to go in an image and nowhere else. In every step, each agent chooses one of four
// quarters, and is paid 1 for the bright one. A stream of the replica counts what the agents have been paid.
#include <wd/env.h>

struct Seen {
  static constexpr int kAgents = 2, kSide = 4;
  enum Stream { kImage, kBoard, kOwn };
  enum Nan { kNowhere, kInBoard, kInOwn };

  struct Params {
    int limit = 10;
    int nan = kNowhere;
    bool unwritten = false, beyond = false, empty = false;
    void describe(auto&& field) {
      field("limit", limit, {2, 1000}, "steps of an episode");
      field("unwritten", unwritten, "the board lacks its last number");
      field("beyond", beyond, "an image has one pixel too many");
      field("empty", empty, "the board is always 0");
      field.choice("nan", nan, {"nowhere", "board", "own"},
                   "the stream that has a NaN in step 2; own: one more, of agents");
    }
  };

  struct State {
    wd::PerAgent<int> bright, paid;
    void describe(auto&& field) { field("bright", bright), field("paid", paid); }
  };

  static wd::Spec spec(const Params& p) {
    wd::Spec spec = {.roles = {{.name = "player",
                                .count = kAgents,
                                .observation = {{"nothing", 1}},
                                .action = wd::ActionSpace::discrete({4}, {"quarter"})}},
                     .time_limit = p.limit,
                     .streams = {{"image", wd::StreamSpec::kAgent, {1, kSide, kSide}, wd::StreamSpec::kUint8},
                                 {"board", wd::StreamSpec::kReplica, {3}}}};
    if (p.nan == kInOwn) spec.streams.push_back({"own", wd::StreamSpec::kAgent, {2}});
    return spec;
  }

  WD_FN static void reset(auto& team, const Params&, State& s, wd::Random random) {
    team.each(kAgents, [=, &s](int i) {
      s.bright[i] = random.integer(i, 0, 4);
      s.paid[i] = 0;
    });
  }

  WD_FN static void step(auto& team, const Params&, State& s, wd::Actions a, wd::Random random,
                         wd::Outcome& out) {
    team.each(kAgents, [=, &s, &out](int i) {
      const int right = a.discrete(i, 0) == s.bright[i] ? 1 : 0;
      out.reward(i) = static_cast<float>(right);
      s.paid[i] += right;
      s.bright[i] = random.integer(i, 0, 4);
    });
  }

  WD_FN static void observe(auto& team, const Params&, const State&, wd::Observations obs) {
    team.each(kAgents, [=](int i) { obs(i, 0) = 0.5f; });
  }

  WD_FN static void streams(auto& team, const Params& p, const State& s, wd::Streams rows) {
    team.each_pair(kAgents, kSide * kSide, [=, &s](int i, int pixel) {
      const int quarter = 2 * (pixel / kSide / 2) + pixel % kSide / 2;
      rows.of_agent<std::uint8_t>(kImage, i)[pixel] = quarter == s.bright[i] ? 255 : 3;
    });
    const float left = static_cast<float>(p.limit - team.t());
    team.once([=, &s] {
      float* const board = rows.of_replica<float>(kBoard);
      board[0] = p.empty ? 0.0f : left;
      for (int i = 0; i < kAgents - (p.unwritten ? 1 : 0); ++i)
        board[1 + i] = p.empty ? 0.0f : static_cast<float>(s.paid[i]);
      if (p.nan == kInBoard && team.t() == 2) board[2] = __builtin_nanf("");
      if (p.beyond) rows.of_agent<std::uint8_t>(kImage, kAgents - 1)[kSide * kSide] = 1;
    });
    if (p.nan != kInOwn) return;
    team.each_pair(kAgents, 2, [=](int i, int k) {
      rows.of_agent<float>(kOwn, i)[k] =
          i == 1 && k == 0 && left == static_cast<float>(p.limit - 2) ? __builtin_nanf("") : 0.5f;
    });
  }
};
