// spikes_test.cpp: z-scores of losses and gradient norms, and which of them are reported.
#include "src/metrics/spikes.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "src/metrics/jsonl.h"
#include "tests/run/temporary_folder.h"

namespace wd {
namespace {

MetricsRow row_with(std::int64_t iteration, double norm) {
  MetricsRow row({.iteration = iteration, .env_steps = iteration, .agent_steps = iteration});
  row.add("a/total_loss", std::nan(""));
  row.add("a/entropy", 1e9 * static_cast<double>(iteration));
  row.add("a/grad_norm", norm);
  return row;
}

double score(const MetricsRow& row) {
  for (const auto& [name, value] : row.values())
    if (name == "a/grad_norm_z") return value;
  throw std::runtime_error("no score");
}

// Values 1 and 3 in turn: mean 2, standard deviation 1.
double alternating(std::int64_t iteration) { return iteration % 2 == 0 ? 1.0 : 3.0; }

TEST(Spikes, AreDistancesInStandardDeviations) {
  SpikeWatch watch("none");
  for (std::int64_t i = 0; i < 20; ++i) {
    MetricsRow row = row_with(i, alternating(i));
    EXPECT_TRUE(watch.add_scores(row).empty());
    EXPECT_TRUE(std::isnan(score(row))) << "too few rows";
  }
  MetricsRow row = row_with(20, 7.5);
  EXPECT_TRUE(watch.add_scores(row).empty());
  EXPECT_DOUBLE_EQ(score(row), 5.5);
}

TEST(Spikes, AreReportedOnce) {
  SpikeWatch watch("none");
  for (std::int64_t i = 0; i < 200; ++i) {
    MetricsRow row = row_with(i, alternating(i));
    EXPECT_TRUE(watch.add_scores(row).empty()) << i;
  }
  MetricsRow low = row_with(200, -100.0);
  EXPECT_TRUE(watch.add_scores(low).empty()) << "below the mean";
  EXPECT_DOUBLE_EQ(score(low), -102.0);
  SpikeWatch other("none");
  for (std::int64_t i = 0; i < 200; ++i) {
    MetricsRow row = row_with(i, alternating(i));
    other.add_scores(row);
  }
  MetricsRow high = row_with(200, 12.5), higher = row_with(201, 1000.0);
  const std::vector<Spike> spikes = other.add_scores(high);
  ASSERT_EQ(spikes.size(), 1u);
  EXPECT_EQ(spikes[0].metric, "a/grad_norm");
  EXPECT_DOUBLE_EQ(spikes[0].mean, 2.0);
  EXPECT_DOUBLE_EQ(spikes[0].z, 10.5);
  EXPECT_TRUE(other.add_scores(higher).empty()) << "has just been reported";
}

TEST(Spikes, GoOnFromTheFileOfAnInterruptedRun) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.path / "metrics.jsonl";
  SpikeWatch whole(path);
  std::ofstream file(path);
  // Every seventh row has none, as one in which nothing was learned: it takes its place in the window, too.
  const auto value_at = [](std::int64_t i) {
    return i % 7 == 3 ? std::nan("") : std::sin(static_cast<double>(i)) / 3.0;
  };
  for (std::int64_t i = 0; i < 150; ++i) {
    MetricsRow row = row_with(i, value_at(i));
    whole.add_scores(row);
    file << json_line(row);
  }
  file << "{\"a/grad_norm\": 99";  // a line that was being written
  file.close();
  SpikeWatch resumed(path);
  MetricsRow expected = row_with(150, 0.3), row = row_with(150, 0.3);
  whole.add_scores(expected);
  resumed.add_scores(row);
  EXPECT_TRUE(std::isfinite(score(row)));
  EXPECT_EQ(score(row), score(expected));
}

}  // namespace
}  // namespace wd
