// layout_test.cpp: where the fields of a state lie, and what describe() may not say.
#include "wd/detail/layout.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "wd/detail/cpu_executor.h"
#include "wd/error.h"
#include "wd/replicas.h"
#include "wd/trajectory.h"

namespace wd {
namespace {

// A meadow with food, which is no agent: piece f of an episode is worth f in step 1, f + 1 in step 2, ...
struct Meadow {
  struct Params {
    int num_food = 3, num_doors = 0;
    void describe(auto&& field) {
      field("num_food", num_food, {-9, 9}, ""), field("num_doors", num_doors, {0, 9}, "");
    }
  };
  struct State {
    PerAgent<int> x;
    Array<double> food;
    Array<int> doors;
    Scratch<float> near;
    PerReplica<int> eaten;
    void describe(auto&& field, const Params& p) {
      field("x", x), field("food", food, p.num_food), field("doors", doors, p.num_doors);
      field("near", near, 5), field("eaten", eaten);
    }
  };
  static Spec spec(const Params&) {
    return {.roles = {{.name = "cow",
                       .count = 5,
                       .observation = {{"x", 1}},
                       .action = ActionSpace::discrete({2})}},
            .time_limit = 4,
            .statistics = {{"food", "", ""}}};
  }
  WD_FN static void reset(auto& team, const Params& p, State& s, Random) {
    team.each(5, [&](int i) { s.x[i] = i; });
    team.each(p.num_food, [&](int f) { s.food[f] = f; });
    team.each(p.num_doors, [&](int d) { s.doors[d] = 1; });
    team.once([&] { s.eaten = 0; });
  }
  WD_FN static void step(auto& team, const Params& p, State& s, Actions, Random, Outcome&) {
    team.each(p.num_food, [&](int f) { s.food[f] += 1.0; });
  }
  WD_FN static void observe(auto& team, const Params&, const State& s, Observations obs) {
    team.each(5, [&](int i) { obs(i, 0) = static_cast<float>(s.x[i]); });
  }
};

StateLayout layout_of(int num_food, int num_doors) {
  const Meadow::Params params{num_food, num_doors};
  return detail::make_layout<Meadow>(params, Meadow::spec(params));
}

TEST(Layout, ArraysHaveTheDeclaredCountAndAreKept) {
  const StateLayout layout = layout_of(3, 2);
  const StateField &x = layout.field("x"), &food = layout.field("food"), &doors = layout.field("doors");
  EXPECT_EQ(food.count, 3);
  EXPECT_EQ(food.type, FieldType::kDouble);
  EXPECT_TRUE(food.array && !food.per_agent && !food.scratch);
  EXPECT_TRUE(x.per_agent && !x.array);
  EXPECT_FALSE(layout.field("eaten").array || layout.field("near").array);
  EXPECT_EQ(x.offset, sizeof(ReplicaHeader));
  EXPECT_EQ(food.offset, x.offset + 32);      // five integers, up to a multiple of 16
  EXPECT_EQ(doors.offset, food.offset + 32);  // three doubles
  EXPECT_EQ(layout.field("eaten").offset, doors.offset + 16);
  EXPECT_EQ(layout.block_bytes, doors.offset + 32);
  EXPECT_EQ(layout.field("near").offset, 0u);  // in other memory
}

TEST(Layout, AnArrayMayBeEmpty) {
  const StateLayout layout = layout_of(3, 0);
  EXPECT_EQ(layout.field("doors").count, 0);
  EXPECT_EQ(layout.field("doors").offset, layout.field("eaten").offset);
  EXPECT_EQ(layout.block_bytes, layout_of(3, 2).block_bytes - 16);
}

TEST(Layout, ANegativeCountIsRefused) {
  try {
    layout_of(-1, 0);
    ADD_FAILURE() << "accepted";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "State field food: negative count");
  }
}

// Two names of one member.
struct Twins : Meadow {
  struct State {
    PerAgent<int> x, y;
    void describe(auto&& field) { field("x", x), field("y", y), field("z", x); }
  };
};

TEST(Layout, AMemberWithTwoNamesIsRefused) {
  try {
    detail::make_layout<Twins>({}, Twins::spec({}));
    ADD_FAILURE() << "accepted";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(),
                 "State::describe() names one member twice, as 'x' and as 'z': each member has one field(), "
                 "with its own name");
  }
}

// Steps of one replica by hand.
struct Played {
  detail::CpuEnvironment<Meadow> environment{"meadow"};
  Replicas replicas{environment, {.num_envs = 1}};
  Trajectory trajectory{RolloutShape::of_roles(environment.spec(), 1, {}, {})};
  StateField food = replicas.layout().field("food");

  Played() { replicas.step(trajectory.first_rows()); }
  void step() { replicas.step(trajectory.rows(0)); }
};

TEST(Layout, ArraysAreReadAndWrittenWithOneNumberForEachValue) {
  Played played;
  EXPECT_EQ(played.replicas.read(0, played.food), (std::vector<double>{0, 1, 2}));
  played.replicas.write(0, R"({"food": [7, 8, 0.5], "doors": []})");
  played.step();
  EXPECT_EQ(played.replicas.read(0, played.food), (std::vector<double>{8, 9, 1.5}));
  for (const char* wrong : {R"({"food": [7, 8]})", R"({"food": [7, 8, 9, 9]})", R"({"food": 7})"})
    EXPECT_THROW(played.replicas.write(0, wrong), UsageError) << wrong;
}

TEST(Layout, AStatisticIsTheMeanOfAnArray) {
  Played played;
  for (int t = 0; t < 4; ++t) played.step();
  EXPECT_EQ(played.trajectory.truncated().item<std::uint8_t>(), 1);
  EXPECT_EQ(played.trajectory.statistics().item<float>(), 5.0f);  // of 4, 5 and 6
}

}  // namespace
}  // namespace wd
