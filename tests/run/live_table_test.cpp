// live_table_test.cpp: the table that a wide terminal shows below the progress line.
#include "src/run/live_table.h"

#include <gmock/gmock.h>

#include <cmath>

namespace wd::run {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

MetricsRow measured() {
  MetricsRow row({.iteration = 3, .env_steps = 300, .agent_steps = 600});
  row.add("tagger/recent_return", 12.306);
  row.add("tagger/episode_length", 250.04);
  row.add("tagger/entropy", 2.0794);
  row.add("tagger/approx_kl", 0.00012);
  row.add("tagger/explained_variance", 0.0);
  row.add("tagger/total_loss", -0.25);
  row.add("tagger/grad_norm", 1.5e6);
  row.add("tagger/learning_rate", 0.001);
  row.add("runner/recent_return", std::nan(""));
  row.add("time/environment_s", 0.2);
  row.add("time/inference_s", 0.1);
  row.add("time/update_s", 0.696);
  row.add("time/checkpoint_s", 0.0);
  row.add("time/other_s", 0.004);
  return row;
}

TEST(LiveTable, OneLineAPolicyAndTheSplitOfTime) {
  const MetricsRow row = measured();
  EXPECT_THAT(
      live_table(values_of(row), {"tagger", "runner"}, kLiveTableWidth),
      ElementsAre("  policy    return    length   entropy        KL    ex.var      loss grad norm      rate",
                  "  tagger    12.306     250.0     2.079   1.2e-04    0.0000   -0.2500     1.50M    0.0010",
                  "  runner         -         -         -         -         -         -         -         -",
                  "  time: environment 20 %, inference 10 %, update 70 %"));
}

TEST(LiveTable, ReplayedRolloutsHaveOneTime) {
  MetricsRow row({});
  row.add("time/environment_s", std::nan(""));
  row.add("time/inference_s", std::nan(""));
  row.add("time/update_s", 3.0);
  row.add("time/rollout_mean_s", 1.0);
  EXPECT_EQ(live_table(values_of(row), {"a"}, kLiveTableWidth).back(), "  time: rollout 25 %, update 75 %");
}

TEST(LiveTable, NothingMeasuredYet) {
  const MetricsRow row({});
  EXPECT_THAT(live_table(values_of(row), {"a"}, kLiveTableWidth), SizeIs(2));
}

TEST(LiveTable, LeavesColumnsOutUntilItFits) {
  const MetricsRow row = measured();
  const auto lines = [&](std::size_t width) {
    return live_table(values_of(row), {"tagger", "runner"}, width);
  };
  EXPECT_EQ(lines(79)[0], "  policy    return    length   entropy        KL    ex.var      loss grad norm");
  EXPECT_EQ(lines(60)[0], "  policy    return   entropy        KL    ex.var      loss");
  EXPECT_EQ(lines(38)[0], "  policy    return   entropy        KL");
  EXPECT_EQ(lines(38)[1], "  tagger    12.306     2.079   1.2e-04");
  EXPECT_EQ(lines(38)[3], "  time: environment 20 %") << "whole words";
  EXPECT_THAT(lines(37), SizeIs(0));
}

TEST(LiveTable, LongNamesAreCut) {
  MetricsRow row = measured();
  for (const std::size_t width : {kLiveTableWidth, std::size_t{79}, std::size_t{50}})
    EXPECT_THAT(live_table(values_of(row), {std::string(64, 'x'), "tagger"}, width),
                AllOf(Not(SizeIs(0)), Each(testing::Property(&std::string::size, testing::Le(width)))));
}

}  // namespace
}  // namespace wd::run
