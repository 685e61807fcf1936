// metrics_test.cpp: rows, metrics.jsonl and event files.
#include "wd/metrics.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "src/metrics/jsonl.h"
#include "src/metrics/number.h"
#include "src/metrics/tensorboard.h"
#include "tests/run/temporary_folder.h"

namespace wd {
namespace {

using test::message_of;
using test::read_text;
using testing::HasSubstr;

constexpr StepCounts kCounts{.iteration = 3, .env_steps = 1'000'000, .agent_steps = 105'000'000};
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Metrics, NumbersReadBackAsTheyWere) {
  EXPECT_EQ(json_number(0.1), "0.1");
  EXPECT_EQ(json_number(1e6), "1000000");
  EXPECT_EQ(json_number(-0.0), "-0.0");
  EXPECT_EQ(json_number(1e-7), "1e-07");
  EXPECT_EQ(json_number(kNan), "null");
  EXPECT_EQ(json_number(-kInfinity), "null");
  for (const double value : {1.0 / 3.0, 5e-324, 1.7976931348623157e308, 9007199254740993.0, 1e300, -2.5}) {
    EXPECT_EQ(std::strtod(json_number(value).c_str(), nullptr), value);
  }
}

TEST(Metrics, RowKeepsItsOrder) {
  MetricsRow row(kCounts);
  row.add("tagger/policy_loss", -0.25);
  row.add("runner/mean_return", kNan);
  row.add("env/tags", 2.0);
  row.add("time/update_s", 0.5);
  EXPECT_EQ(json_line(row),
            "{\"iteration\":3,\"env_steps\":1000000,\"agent_steps\":105000000,\"tagger/policy_loss\":-0.25,"
            "\"runner/mean_return\":null,\"env/tags\":2,\"time/update_s\":0.5}\n");
}

TEST(Metrics, RowTakesDeclaredNamesOnce) {
  MetricsRow row(kCounts);
  row.add("tagger/entropy", 1.0);
  EXPECT_THAT(message_of([&] { row.add("tagger/entropy", 1.0); }), HasSubstr("already"));
  EXPECT_THAT(message_of([&] { row.add("tagger/entorpy", 1.0); }), HasSubstr("not declared"));
  EXPECT_THAT(message_of([&] { row.add("env/a\"b", 1.0); }), HasSubstr("is not a metric's name"));
}

TEST(Metrics, AnAlgorithmDeclaresItsOwnOnce) {
  declare_metric("of_this_test", "a help", Reduce::kMax);
  declare_metric("of_this_test", "a help", Reduce::kMax);
  MetricsRow row(kCounts);
  row.add("tagger/of_this_test", 1.0);
  EXPECT_EQ(find_metric("runner/of_this_test")->help, "a help");
  EXPECT_EQ(reduce_of("tagger/of_this_test"), Reduce::kMax);
  EXPECT_THAT(message_of([] { declare_metric("of_this_test", "a help", Reduce::kMin); }),
              HasSubstr("declared already"));
  EXPECT_THAT(message_of([] { declare_metric("entropy", "another", Reduce::kMean); }),
              HasSubstr("declared already"));
  EXPECT_THAT(message_of([] { declare_metric("of/test", "a help", Reduce::kMean); }),
              HasSubstr("only letters"));
}

TEST(Metrics, EachDeclaresItsReduction) {
  EXPECT_EQ(reduce_of("episodes"), Reduce::kMax);  // every rank counts the episodes of all ranks
  EXPECT_EQ(reduce_of("time/env_steps_per_s"), Reduce::kSum);
  EXPECT_EQ(reduce_of("tagger/entropy"), Reduce::kMean);
  EXPECT_EQ(reduce_of("runner/max_return"), Reduce::kMax);
  EXPECT_EQ(reduce_of("env/anything"), Reduce::kMean);
  EXPECT_EQ(reduce_of("shared/action_std_over_time/turn"), Reduce::kMean);
  EXPECT_THAT(message_of([] { reduce_of("time/entropy"); }), HasSubstr("not declared"));
  for (const Metric& metric : metrics()) {
    const std::string group(metric.group);
    EXPECT_EQ(reduce_of(group.empty() ? std::string(metric.name) : group + '/' + std::string(metric.name)),
              metric.reduce);
  }
}

TEST(Metrics, AFullDiskLeavesWholeLines) {
  const test::TemporaryFolder folder;
  MetricsFile file(folder.path / "metrics.jsonl");
  const MetricsRow row(kCounts);
  const std::string line = json_line(row);
  file.append(row);
  {
    const test::FullDisk full(line.size() + 5);
    EXPECT_THROW(file.append(row), std::runtime_error);
  }
  EXPECT_EQ(read_text(folder.path / "metrics.jsonl"), line);
  file.append(row);
  EXPECT_EQ(read_text(folder.path / "metrics.jsonl"), line + line);
}

TEST(Metrics, ExistingFileIsNotTouched) {
  const test::TemporaryFolder folder;
  test::write_text(folder.path / "metrics.jsonl", "{}\n");
  EXPECT_THAT(message_of([&] { MetricsFile{folder.path / "metrics.jsonl"}; }), HasSubstr("File exists"));
}

TEST(Events, KnownChecksum) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(Events, AFullDiskLeavesWholeRecords) {
  const test::TemporaryFolder folder;
  EventFile file(folder.path);
  const std::filesystem::path path = std::filesystem::directory_iterator(folder.path)->path();
  const auto header_bytes = std::filesystem::file_size(path);
  {
    const test::FullDisk full(header_bytes + 20);
    EXPECT_THROW(file.append(MetricsRow(kCounts)), std::runtime_error);
  }
  EXPECT_EQ(std::filesystem::file_size(path), header_bytes);
}

}  // namespace
}  // namespace wd
