// result_test.cpp: medians, rates and shares of ceilings; rows of a sweep whose settings failed.
#include "src/bench/result.h"

#include <gmock/gmock.h>

#include <csignal>

#include "src/bench/table.h"

namespace wd::bench {
namespace {

using testing::DoubleEq;
using testing::HasSubstr;
using testing::Not;

constexpr Ceilings kCeilings{.copy_bytes_per_s = 20e9, .fp32_flop_per_s = 100e9};

Result example() {
  Result result{
      .env = "game", .mode = "train", .device = "cpu", .device_name = "CPU", .num_envs = 10, .agents = 3};
  result.rollout_steps = result.steps_in_round = 20;
  result.round = "iteration";
  result.phases = {{"environment", Phase::kEnvironment, {.bytes = 1e6}},
                   {"update", Phase::kUpdate, {.bytes = 3e6, .flop = 50e6}}};
  // Rounds of 200 steps that take 0.1, 0.2 and 0.4 s; the phases take a quarter and three quarters of it.
  for (const auto& [rounds, seconds] : {std::pair(4, 0.4), std::pair(2, 0.4), std::pair(1, 0.4)})
    result.windows.push_back({rounds, seconds, {0.25 * seconds, 0.0, 0.75 * seconds, 0.0}});
  result.peak_bytes = 1 << 30;
  return result;
}

TEST(MeasureTest, MedianAndExtremes) {
  const Spread odd = spread({3.0, 1.0, 2.0}), even = spread({4.0, 1.0, 2.0, 3.0});
  EXPECT_EQ(odd.median, 2.0);
  EXPECT_EQ(odd.least, 1.0);
  EXPECT_EQ(odd.most, 3.0);
  EXPECT_EQ(even.median, 2.5);
  EXPECT_THROW(spread({}), std::runtime_error);
}

TEST(MeasureTest, WindowsComeAfterAWarmUpAndLastLongEnough) {
  int rounds = 0, asked = 0;
  const Workload workload{.round = [&] { ++rounds; },
                          .phases =
                              [&] {
                                ++asked;
                                return PhaseSeconds{};
                              },
                          .device = {}};
  const std::vector<Window> windows = measure(workload, 0.02);
  EXPECT_GE(windows.size(), 3u);
  EXPECT_EQ(asked, static_cast<int>(windows.size()) + 1);  // the warm-up windows are discarded
  double seconds = 0.0;
  std::int64_t counted = 0;
  for (const Window& window : windows) {
    EXPECT_GE(window.seconds, 0.002);
    seconds += window.seconds;
    counted += window.rounds;
  }
  EXPECT_GE(seconds, 0.02);
  EXPECT_LT(counted, rounds);
}

TEST(ResultTest, RatesAreMediansAndSharesAreOfCeilings) {
  const Json json = to_json(example(), kCeilings);
  EXPECT_EQ(json["env_steps"], 7 * 200);
  EXPECT_THAT(json["env_steps_per_s"].get<double>(), DoubleEq(1000.0));
  EXPECT_THAT(json["env_steps_per_s_least"].get<double>(), DoubleEq(500.0));
  EXPECT_THAT(json["env_steps_per_s_most"].get<double>(), DoubleEq(2000.0));
  EXPECT_THAT(json["agent_steps_per_s"].get<double>(), DoubleEq(3000.0));
  EXPECT_THAT(json["ms_per_round"].get<double>(), DoubleEq(200.0));
  EXPECT_THAT(json["ms"]["environment"].get<double>(), DoubleEq(50.0));
  // 200 steps of 1 MB in 50 ms: 4 GB/s of 20 GB/s; 50 MFLOP each in 150 ms: 66.7 GFLOP/s of 100 GFLOP/s
  EXPECT_THAT(json["achieved"]["environment"]["GB_per_s"].get<double>(), DoubleEq(4.0));
  EXPECT_THAT(json["achieved"]["environment"]["share_of_copy"].get<double>(), DoubleEq(0.2));
  EXPECT_FALSE(json["achieved"]["environment"].contains("TFLOP_per_s"));
  EXPECT_NEAR(json["achieved"]["update"]["share_of_fp32"].get<double>(), 2.0 / 3.0, 1e-12);
  // all: 4 MB and 50 MFLOP per step at 1,000 steps per second
  EXPECT_THAT(json["achieved"]["all"]["GB_per_s"].get<double>(), DoubleEq(4.0));
  EXPECT_THAT(json["achieved"]["all"]["TFLOP_per_s"].get<double>(), DoubleEq(0.05));
  EXPECT_FALSE(json.contains("launches_per_step"));
  const std::string text = to_text(json);
  EXPECT_THAT(text, HasSubstr("1.00k env/s, 3.00k agent/s"));
  EXPECT_THAT(text, HasSubstr("1.0 GiB"));
  EXPECT_THAT(text, Not(HasSubstr("launches")));
}

TEST(ResultTest, TimesOfTheEnvironmentAloneAreForAStep) {
  Result result = example();
  result.by_step = true;
  const Json json = to_json(result, kCeilings);
  EXPECT_THAT(json["ms_per_round"].get<double>(), DoubleEq(10.0));
  EXPECT_THAT(json["ms"]["environment"].get<double>(), DoubleEq(2.5));
  EXPECT_THAT(json["achieved"]["environment"]["GB_per_s"].get<double>(), DoubleEq(4.0));
}

TEST(ResultTest, LaunchesAreOfOneStep) {
  Result result = example();
  result.launches = Launches{.calls = 10, .kernels = 300};
  const Json json = to_json(result, kCeilings);
  EXPECT_THAT(json["launches_per_step"].get<double>(), DoubleEq(0.5));
  EXPECT_THAT(json["kernels_per_step"].get<double>(), DoubleEq(15.0));
  EXPECT_THAT(to_text(json), HasSubstr("0.5 a step, 15 kernels"));
}

TEST(ResultTest, CeilingsSurviveJson) {
  Ceilings ceilings = kCeilings;
  ceilings.bf16_flop_per_s = 700e12;
  const Ceilings read = parse_ceilings(to_json(ceilings).dump());
  EXPECT_THAT(read.copy_bytes_per_s, DoubleEq(20e9));
  EXPECT_THAT(*read.bf16_flop_per_s, DoubleEq(700e12));
  EXPECT_FALSE(read.tf32_flop_per_s);
  for (const char* const bad : {"", "[]", "{}", R"({"copy_GB_per_s": 0, "fp32_TFLOP_per_s": 1})"})
    EXPECT_THROW(parse_ceilings(bad), std::runtime_error) << bad;
}

std::vector<Row> rows() {
  Row good{.values = {"64"}}, large{.values = {"128"}}, killed{.values = {"256"}}, broken{.values = {"512"}};
  good.take({0, to_json(example(), kCeilings).dump(), "bench: something\n"}, false);
  large.take({12, "", "said before\nerror: 5 GB: cannot allocate memory\nframe #0: somewhere\n"}, false);
  killed.take({128 + SIGKILL, "", ""}, true);
  broken.take({128 + SIGKILL, "", "said before\n"}, false);
  return {good, large, killed, broken};
}

TEST(TableTest, EverySettingIsARowThatSaysWhatCameOfIt) {
  const std::vector<Sweep> sweeps = {{"num_envs", {"64", "128", "256", "512"}}};
  const std::vector<Row> all = rows();
  EXPECT_EQ(all[0].status, "ok");
  EXPECT_EQ(all[1].status, "out of memory");
  EXPECT_EQ(all[2].status, "out of memory");
  EXPECT_EQ(all[3].status, "failed");
  EXPECT_EQ(all[3].detail, "said before");
  const Table table(sweeps);
  EXPECT_THAT(table.line(all[0]), HasSubstr("      64  "));
  EXPECT_THAT(table.line(all[0]), HasSubstr("1.00k"));
  EXPECT_EQ(table.line(all[1]), "     128  out of memory: 5 GB: cannot allocate memory\n");
  const Json json = sweep_json(sweeps, all);
  EXPECT_EQ(json["rows"].size(), 4u);
  EXPECT_EQ(json["rows"][0]["result"]["env"], "game");
  EXPECT_EQ(json["rows"][1]["settings"]["num_envs"], "128");
  EXPECT_FALSE(json["rows"][1].contains("result"));
}

TEST(TableTest, AProcessThatAnswersNonsenseHasFailed) {
  Row row;
  row.take({0, "nonsense", ""}, false);
  EXPECT_EQ(row.status, "failed");
  EXPECT_FALSE(row.measured());
}

}  // namespace
}  // namespace wd::bench
