// table_rows_test.cpp: the rows derived from an environment's table equal the rows that it writes, to the
// bit.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/rollout/played.h"
#include "tests/rollout/rows_of_table.h"
#include "tests/support.h"

namespace wd {
namespace {

constexpr int kTableSteps = 100, kTableReplicas = 32;

void expect_rows_of_table(const Environment& environment) {
  const ObservationTable table = environment.spec().table;
  const Played rows(environment, kTableSteps, kTableReplicas, {}),
      tables(environment, kTableSteps, kTableReplicas, {.as_table = true});
  EXPECT_TRUE(at::equal(rows.replicas.blocks(), tables.replicas.blocks()));
  bool anybody_left = false;
  for (std::size_t p = 0; p < rows.trajectory.policies().size(); ++p) {
    const PolicyBuffers &a = rows.trajectory.policies()[p], &b = tables.trajectory.policies()[p];
    EXPECT_TRUE(at::equal(a.active, b.active));
    EXPECT_TRUE(at::equal(a.reward, b.reward));
    EXPECT_EQ(b.observation.narrow(3, table.columns(), b.observation.size(3) - table.columns())
                  .count_nonzero()
                  .item<std::int64_t>(),
              0);
    for (int slot = 0; slot < a.num_agents; ++slot) {
      const at::Tensor in_game = a.active.select(2, slot).to(at::kBool),
                       written = a.observation.select(2, slot).narrow(2, 0, a.observation_size),
                       follows = rows_of_table(table, b.observation, a.agent[static_cast<std::size_t>(slot)]);
      EXPECT_TRUE(at::equal(written.index({in_game}), follows.index({in_game}))) << a.name << ' ' << slot;
      anybody_left = anybody_left || !in_game.all().item<bool>();
    }
  }
  EXPECT_TRUE(anybody_left) << "nobody left the game: the test shows less than it says";
}

TEST(TableRows, AreThoseOfEveryEnvironmentThatDeclaresATable) {
  int with_table = 0;
  for (const EnvironmentRow& row : detail::environment_table()) {
    const std::unique_ptr<Environment> environment = make_environment(row);
    if (environment->spec().table.features == 0) continue;
    ++with_table;
    SCOPED_TRACE(row.name);
    expect_rows_of_table(*environment);
  }
  EXPECT_EQ(with_table, 1) << "tag_continuous";
}

TEST(TableRows, HaveWhatAgentsKnowOfThemselves) {
  const Experiment setup = make_setup("tag_continuous", {"env.observe_self=true"});
  EXPECT_EQ(setup.environment->spec().table.own, 6);
  expect_rows_of_table(*setup.environment);
}

}  // namespace
}  // namespace wd
