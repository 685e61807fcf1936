// spec_fault_test.cpp: how a role reads its observation as lists of things, right and wrong.
#include "src/replicas/spec_fault.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "wd/detail/cpu_executor.h"
#include "wd/error.h"

namespace wd {
namespace {

Spec spec_of_things() {
  Role role{.name = "player",
            .observation = {{"others", 12}, {"is_tagger", 3}, {"heading", 2}},
            .action = ActionSpace::discrete({3})};
  role.entities.lists = {{.name = "agents",
                          .count = 3,
                          .x = {"others", 0, 4},
                          .y = {"others", 1, 4},
                          .heading = {"others", 2, 4},
                          .kind = {"is_tagger"},
                          .kinds = 2,
                          .features = {{"others", 3, 4}}},
                         {.name = "none", .count = 0, .x = {"others", 12}, .y = {"others", 12}}};
  role.entities.heading_cos = {"heading", 0};
  role.entities.heading_sin = {"heading", 1};
  return {.roles = {role}, .time_limit = 5};
}

std::string fault_of(const std::function<void(Role&, EntityList&)>& change) {
  Spec spec = spec_of_things();
  change(spec.roles[0], spec.roles[0].entities.lists[0]);
  return spec_fault(spec, {});
}

TEST(SpecFault, ListsOfThings) {
  const std::string at = "role player: list of things 'agents': ";
  EXPECT_EQ(fault_of([](Role&, EntityList&) {}), "");
  EXPECT_EQ(fault_of([](Role&, EntityList& list) { list.count = -1; }), at + "has -1 things");
  EXPECT_EQ(fault_of([](Role&, EntityList& list) { list.y = {}; }), at + "the observation has no part ''");
  EXPECT_EQ(fault_of([](Role&, EntityList& list) { list.presence = {"here"}; }),
            at + "the observation has no part 'here'");
  EXPECT_EQ(fault_of([](Role& role, EntityList&) { role.observation.push_back({"others"}); }),
            at + "the observation has several parts 'others'");
  EXPECT_EQ(fault_of([](Role&, EntityList& list) { list.features[0].first = 4; }),
            at + "part 'others' has 12 entries, and not 3 from 4 on, 4 apart");
  EXPECT_EQ(fault_of([](Role&, EntityList& list) { list.x.first = -1; }),
            at + "part 'others' has 12 entries, and not 3 from -1 on, 4 apart");
  EXPECT_EQ(fault_of([](Role&, EntityList& list) { list.x.step = 0; }),
            at + "part 'others' has 12 entries, and not 3 from 0 on, 0 apart");
  EXPECT_EQ(fault_of([](Role&, EntityList& list) { list.x.step = 1 << 30; }),
            at + "part 'others' has 12 entries, and not 3 from 0 on, 1073741824 apart");
  EXPECT_EQ(fault_of([](Role&, EntityList& list) { list.count = 4; }),
            at + "part 'others' has 12 entries, and not 4 from 0 on, 4 apart");
}

TEST(SpecFault, Actions) {
  EXPECT_EQ(
      fault_of([](Role& role, EntityList&) {
        role.action = {.heads = {2}, .names = {"price"}, .bounds = {{0.0f, 1.0f}}};
      }),
      "role player has choices (heads) and components (bounds) at once, which is not supported: take one "
      "kind, with choices for steps of a component, or components for choices");
  EXPECT_EQ(
      fault_of([](Role& role, EntityList&) { role.action = ActionSpace::box(2, 1.0f, 1.0f); }),
      "role player: action bounds [1, 1]: the low one must be below the high one; leave out a component "
      "that is always the same");
}

TEST(SpecFault, FeaturesOfChoices) {
  const std::string at = "role player: choice_features";
  const auto fault = [](ChoiceFeatures features) {
    return fault_of([&](Role& role, EntityList&) { role.choice_features = std::move(features); });
  };
  EXPECT_EQ(fault({.size = 4, .first = 5}), "");
  EXPECT_EQ(fault({.size = 4, .first = 6}), at + ": the observation has 17 entries, and not 12 from 6 on");
  EXPECT_EQ(fault({.size = 2, .fixed = {0, 1, 2, 3, 4, 5}}), "");
  EXPECT_EQ(fault({.size = 2, .fixed = {0, 1, 2, 3, 4}}),
            at + ".fixed has 5 numbers instead of 3 choices times 2");
  EXPECT_EQ(fault({.size = 1, .fixed = {0, NAN, 2}}), at + ".fixed has a number that is not finite");
  EXPECT_EQ(fault({.size = 1, .fixed = {0, 1, 2}, .first = 0}),
            at + " need either `fixed` or `first`, and have both");
  EXPECT_EQ(fault({.size = 1}), at + " need either `fixed` or `first`, and have neither");
  EXPECT_EQ(fault({.size = 0, .first = 3}), at + ".size is 0");
  EXPECT_EQ(fault({.size = 1 << 30, .first = 3}),
            at + ": the observation has 17 entries, and not 3221225472 from 3 on");
  EXPECT_EQ(fault_of([](Role& role, EntityList&) {
              role.action = ActionSpace::box(1, -1.0f, 1.0f);
              role.choice_features = {.size = 1, .first = 0};
            }),
            at + " of an action without choices");
}

TEST(SpecFault, KindsFeaturesAndHeadingsOfThings) {
  const std::string at = "role player: list of things 'agents': ";
  EXPECT_EQ(fault_of([](Role&, EntityList& list) { list.kinds = 0; }), at + "has 0 kinds instead of 1 to 4");
  EXPECT_EQ(fault_of([](Role&, EntityList& list) { list.kinds = 5; }), at + "has 5 kinds instead of 1 to 4");
  EXPECT_EQ(fault_of([](Role&, EntityList& list) { list.kind = {}; }),
            at + "has 2 kinds and no column `kind`");
  EXPECT_EQ(fault_of([](Role&, EntityList& list) { list.kinds = 1; }),
            at + "has a column `kind` and one kind");
  EXPECT_EQ(fault_of([](Role&, EntityList& list) { list.features.resize(8, list.x); }), "");
  EXPECT_EQ(fault_of([](Role&, EntityList& list) { list.features.resize(9, list.x); }),
            at + "has 9 features, more than 8");
  EXPECT_EQ(fault_of([](Role& role, EntityList& list) { role.entities.lists.assign(6, list); }), "");
  EXPECT_EQ(fault_of([](Role& role, EntityList& list) { role.entities.lists.assign(7, EntityList(list)); }),
            "role player observes 7 lists of things, more than 6");
  EXPECT_EQ(fault_of([](Role& role, EntityList&) { role.entities.heading_sin = {}; }),
            "role player: of heading_cos and heading_sin there is one alone");
  EXPECT_EQ(fault_of([](Role& role, EntityList&) { role.entities.heading_sin.first = 2; }),
            "role player: its heading: part 'heading' has 2 entries, and not 1 from 2 on, 1 apart");
  EXPECT_EQ(fault_of([](Role& role, EntityList&) { role.entities.heading_cos.part = "way"; }),
            "role player: its heading: the observation has no part 'way'");
}

StateLayout layout_with_arrays() {
  StateLayout layout;
  layout.fields = {
      {.name = "x", .count = 4, .per_agent = true},  {.name = "size"},
      {.name = "food_x", .count = 9, .array = true}, {.name = "food_y", .count = 9, .array = true},
      {.name = "door_x", .count = 2, .array = true}, {.name = "none", .count = 0, .array = true},
      {.name = "force", .count = 4, .scratch = true}};
  return layout;
}

TEST(SpecFault, ShapesOfArrays) {
  using drawing::circle;
  const auto fault = [](drawing::Shape shape) {
    Spec spec = spec_of_things();
    spec.drawing.shapes = {std::move(shape)};
    return spec_fault(spec, layout_with_arrays());
  };
  EXPECT_EQ(fault(circle("food_x", "food_y", "size")), "");
  EXPECT_EQ(fault(circle("food_x", "food_y", "size").scenery(9)), "");
  EXPECT_EQ(fault(circle("food_x", "door_x", 1.0).scenery(2)), "");
  EXPECT_EQ(fault(circle("none", "none", 1.0)), "");
  EXPECT_EQ(fault(circle("x", 0.0, 1.0).of("player")), "");
  EXPECT_EQ(fault(circle("x", 0.0, 1.0).scenery(4)), "");
  EXPECT_EQ(fault(circle("food_x", "food_y", 1.0).scenery(10)),
            "the drawing shows 10 objects of 'food_x', which has 9 values");
  EXPECT_EQ(fault(circle("x", 0.0, 1.0).scenery(5)),
            "the drawing shows 5 objects of 'x', which has 4 values");
  EXPECT_EQ(fault(circle("food_x", "door_x", 1.0)),
            "a shape uses the arrays 'food_x' and 'door_x', which have 9 and 2 values");
  EXPECT_EQ(fault(circle("food_x", "x", 1.0)),
            "a shape uses 'x', which is per agent, and the array 'food_x'");
  EXPECT_EQ(fault(circle("x", "food_y", 1.0).scenery(2)),
            "a shape uses 'x', which is per agent, and the array 'food_y'");
  EXPECT_EQ(fault(circle("food_x", "food_y", 1.0).of("player")),
            "a shape of role 'player' uses the array 'food_y', whose objects are not agents");
  EXPECT_EQ(fault(circle("force", 0.0, 1.0)), "the drawing uses 'force', which is working memory");
  EXPECT_EQ(fault(circle("food", 0.0, 1.0)), "the drawing uses 'food', which is not a state field");
}

TEST(SpecFault, Cells) {
  using drawing::cells;
  const auto fault = [](drawing::Shape shape) {
    Spec spec = spec_of_things();
    spec.drawing.shapes = {std::move(shape)};
    return spec_fault(spec, layout_with_arrays());
  };
  EXPECT_EQ(fault(cells("food_x", 3, {"", "player", "gray", "#12aBc9"})), "");
  EXPECT_EQ(fault(cells("food_x", 9, {}).round()), "");
  EXPECT_EQ(fault(cells("food_x", 1, {"gray"}).scenery(3)), "");
  EXPECT_EQ(fault(cells("none", 4, {"", "gray"})), "");
  for (const char* name : {"x", "size"})
    EXPECT_EQ(fault(cells(name, 2, {"gray"})),
              concat("the drawing shows cells of '", name, "', which is not an array (wd::Array)"));
  EXPECT_EQ(fault(cells("", 2, {"gray"})),
            "the drawing shows cells of '', which is not an array (wd::Array)");
  EXPECT_EQ(fault(cells("wall", 2, {"gray"})), "the drawing uses 'wall', which is not a state field");
  for (const int columns : {4, 18, 0, -3})
    EXPECT_EQ(
        fault(cells("food_x", columns, {"gray"})),
        concat("the drawing shows cells of 'food_x' in ", columns, " columns, which do not divide 9 values"));
  for (const char* color : {"green", "#12345", "#1234567", "#12345g", "123456#"})
    EXPECT_EQ(fault(cells("food_x", 3, {"", color})),
              concat("the drawing shows cells of 'food_x' in the color '", color,
                     "', which is no role, gray or #rrggbb"));
  EXPECT_EQ(fault(cells("food_x", 3, {"gray"}).of("player")),
            "a shape of role 'player' uses the array 'food_x', whose objects are not agents");
}

TEST(SpecFault, StatisticsOfArrays) {
  const auto fault = [](const char* field, const char* role) {
    Spec spec = spec_of_things();
    spec.statistics = {{field, "", role}};
    return spec_fault(spec, layout_with_arrays());
  };
  EXPECT_EQ(fault("food_x", ""), "");
  EXPECT_EQ(fault("food_x", "player"), "statistic 'food_x' is an array and names a role");
  EXPECT_EQ(fault("none", ""), "statistic 'none' is an array without values");
  EXPECT_EQ(fault("x", ""), "statistic 'x' is per agent and names no role");
  EXPECT_EQ(fault("force", ""), "statistic 'force' is working memory");
}

TEST(SpecFault, Streams) {
  const auto fault = [](std::vector<StreamSpec> streams) {
    Spec spec = spec_of_things();
    spec.streams = std::move(streams);
    return spec_fault(spec, {});
  };
  EXPECT_EQ(
      fault({{"image", StreamSpec::kAgent, {3, 8, 8}, StreamSpec::kUint8}, {"board", StreamSpec::kReplica}}),
      "");
  EXPECT_EQ(fault({{"a"}, {"b"}, {"c"}, {"d"}, {"e"}}), "5 streams, and at most 4 are possible");
  EXPECT_EQ(fault({{"an image"}}), "stream 'an image': the name must be made of A-Z a-z 0-9 . _ -");
  EXPECT_EQ(fault({{"a"}, {"a"}}), "two streams are called a");
  EXPECT_EQ(fault({{"reward"}}), "stream 'reward': recordings have a buffer of this name: choose another");
  EXPECT_EQ(fault({{"agent_id"}}), "stream 'agent_id': the program uses this name: choose another");
  EXPECT_EQ(fault({{"norm"}}), "stream 'norm': the program uses this name: choose another");
  EXPECT_EQ(fault({{"state", StreamSpec::kReplica, {3}}}), "");
  EXPECT_EQ(fault({{"a", StreamSpec::kAgent, {4, 0}}}), "stream 'a': its shape has a 0");
  EXPECT_EQ(fault({{"a", StreamSpec::kAgent, {1 << 20, 1 << 20}}}),
            "stream 'a': a row has more than 2^24 numbers");
}

TEST(SpecFault, Turns) {
  const auto fault = [](const std::function<void(Spec&)>& change) {
    Spec spec{.roles = {{.name = "player",
                         .count = 2,
                         .observation = {{"x", 1}},
                         .action = ActionSpace::discrete({3, 2}),
                         .action_mask = true}},
              .time_limit = 5,
              .zero_sum_turns = {.wait = 2}};
    change(spec);
    return spec_fault(spec, {});
  };
  EXPECT_EQ(fault([](Spec&) {}), "");
  EXPECT_EQ(fault([](Spec& spec) {
              spec.roles.push_back(spec.roles[0]);
              spec.roles[0].name = "first";
              spec.roles[0].count = spec.roles[1].count = 1;
            }),
            "");
  EXPECT_EQ(fault([](Spec& spec) { spec.roles[0].count = 3; }),
            "zero_sum_turns need exactly two agents, and there are 3");
  EXPECT_EQ(fault([](Spec& spec) { spec.roles[0].action_mask = false; }),
            "zero_sum_turns: role player has no action mask, which tells whose turn it is");
  EXPECT_EQ(fault([](Spec& spec) {
              spec.roles[0].action_mask = false;
              spec.roles[0].action = ActionSpace::box(1, -1.0f, 1.0f);
            }),
            "zero_sum_turns: role player has continuous actions, and waiting is a choice");
  for (const int wait : {-2, 3})
    EXPECT_EQ(
        fault([&](Spec& spec) { spec.zero_sum_turns.wait = wait; }),
        concat("zero_sum_turns: role player: wait = ", wait, " is none of the 3 choices of its first head"));
}

// Declares a stream and has no function that writes it.
struct Silent {
  struct Params {
    void describe(auto&&) {}
  };
  struct State {
    PerReplica<int> played;
    void describe(auto&& field) { field("played", played); }
  };
  static Spec spec(const Params&) {
    return {.roles = {{.name = "player", .observation = {{"x", 1}}, .action = ActionSpace::discrete({2})}},
            .time_limit = 5,
            .streams = {{"image"}}};
  }
  static void reset(auto&, const Params&, State&, Random) {}
  static void step(auto&, const Params&, State&, Actions, Random, Outcome&) {}
  static void observe(auto&, const Params&, const State&, Observations) {}
};

TEST(SpecFault, StreamsThatNothingWrites) {
  try {
    detail::CpuEnvironment<Silent>("silent").spec();
    ADD_FAILURE() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "the environment declares streams (Spec::streams) and has no function streams()");
  }
}

}  // namespace
}  // namespace wd
