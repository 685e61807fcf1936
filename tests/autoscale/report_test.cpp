// report_test.cpp: autoscale.json round-trips; the lines of the table; the flags.
#include "src/autoscale/report.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/autoscale/fake_report.h"

namespace wd::scaling {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

TEST(ReportTest, JsonComesBackAsItWas) {
  FakeMachine noisy;
  noisy.noise = 0.01;
  Report report = report_of(noisy);
  EXPECT_EQ(report.result.status, Status::kChosen);
  EXPECT_EQ(parse_report(report_json(report)), report);
  report.limits = {};
  report.objective = Objective::kMemory;
  report.num_workers = 4;
  report.total_steps = 512'000;
  report.result.at_max_batch = true;
  EXPECT_EQ(parse_report(report_json(report)), report);
  FakeMachine failing;
  failing.trouble = [](const Probe&, int n) { return n == 3 ? std::optional(Kind::kFailed) : std::nullopt; };
  const Report failed = report_of(failing), none = report_of({.memory = 0.0});
  EXPECT_EQ(parse_report(report_json(failed)), failed);
  EXPECT_EQ(parse_report(report_json(none)), none);
}

TEST(ReportTest, JsonSaysWhatProgramsLookFor) {
  const Report report = report_of({});
  const Json json = Json::parse(report_json(report));
  const Probe& chosen = report.result.chosen;
  EXPECT_EQ(json["chosen"]["num_envs"], chosen.num_envs);
  EXPECT_EQ(json["chosen"]["train_batch_size"], chosen.num_envs * chosen.rollout_steps);
  EXPECT_EQ(json["tries"].size(), report.result.trials.size());
  EXPECT_EQ(json["status"], "chosen");
}

// Each path set to each of these values is rejected, and nothing crashes.
TEST(ReportTest, WhatCannotBeIsRefused) {
  const Json good = Json::parse(report_json(report_of({})));
  const std::vector<std::pair<const char*, std::vector<Json>>> wrong = {
      {"/version", {0, 2, 4, "3", nullptr}},
      {"/total_steps", {-1, "many", nullptr}},
      {"/at_max_batch", {0, "no", nullptr}},
      {"/status", {"well", 1, nullptr}},
      {"/objective", {"", nullptr}},
      {"/num_workers", {0, -1, 1.5, 1e300}},
      {"/chosen", {nullptr, 1, Json::object()}},
      {"/chosen/num_envs", {0, -1, "64", std::int64_t{1} << 60, 1.5}},
      {"/chosen/train_batch_size", {0, 1}},
      {"/chosen/env_steps_per_s", {nullptr, -1.0, "fast"}},
      {"/chosen/bytes", {-1, 1e300}},
      {"/tries", {nullptr, 1}},
      {"/tries/0/rollout_steps", {0, std::int64_t{1} << 52}},
      {"/tries/0/outcome", {"great", nullptr}},
      {"/tries/0/detail", {1, nullptr}},
      {"/tries/0/ratios", {nullptr, 1.0, Json::array({-1.0}), Json::array({"1"})}},
      {"/tries/0/beside", {1, Json::object()}},
      {"/limits/max_envs", {0, nullptr}},
      {"/limits/memory_bytes", {-1, "all"}},
  };
  for (const auto& [path, values] : wrong) {
    for (const Json& value : values) {
      Json bad = good;
      bad[Json::json_pointer(path)] = value;
      EXPECT_THROW(parse_report(bad.dump()), std::runtime_error) << path << " = " << value;
    }
  }
  Json huge = good;  // a product that overflows every integer type
  huge["start"] = {{"num_envs", 1 << 26}, {"rollout_steps", std::int64_t{1} << 53}, {"train_batch_size", 1}};
  EXPECT_THROW(parse_report(huge.dump()), std::runtime_error);
  for (const auto& [key, value] : good.items()) {
    Json bad = good;
    bad.erase(key);
    EXPECT_THROW(parse_report(bad.dump()), std::runtime_error) << key;
  }
  const std::string text = good.dump();
  for (std::size_t size = 0; size < text.size(); size += 7)
    EXPECT_THROW(parse_report(text.substr(0, size)), std::runtime_error);
  EXPECT_THROW(parse_report(std::string(1 << 20, '[')), std::runtime_error);
}

TEST(ReportTest, AnOutcomeIsOneLineAndComesBack) {
  const ProbeEnd outcome{.kind = Kind::kOutOfMemory,
                         .bytes = 5,
                         .env_steps_per_s = 0.1,
                         .seconds = 1.5,
                         .detail = "line\n\"two\"",
                         .ratios = {0.5, 1.25}};
  const std::string text = outcome_json(outcome);
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  EXPECT_EQ(parse_outcome(text), outcome);
  for (const char* const bad : {"", "[]", "null", "{}", "{\"outcome\":\"fits\"}"})
    EXPECT_THROW(parse_outcome(bad), std::runtime_error) << bad;
  // A child process that reports NaN as its speed is rejected.
  EXPECT_THROW(parse_outcome(outcome_json({.kind = Kind::kFits, .env_steps_per_s = std::nan("")})),
               std::runtime_error);
  EXPECT_NO_THROW(parse_outcome(outcome_json({.detail = "\xff"})));
}

TEST(ReportTest, LinesOfTheTable) {
  EXPECT_EQ(
      table_heading(),
      "stage       replicas         T         batch  iterations      memory   predicted     env/s  outcome");
  EXPECT_EQ(
      table_line({Stage::kReplicas,
                  {4096, 32},
                  {.kind = Kind::kFits, .bytes = 812 << 20, .env_steps_per_s = 1.234e6},
                  std::uint64_t{2} << 30},
                 1'000'000),
      "replicas        4096        32        131072           8     812 MiB     2.0 GiB     1.23M  fits");
  EXPECT_EQ(
      table_line({Stage::kRollout, {4096, 64}, {.kind = Kind::kTooSlow, .detail = "a\nb\x1b[2J"}, 0}, 0),
      "rollout         4096        64        262144           -           -           -         -  too slow: "
      "a b?[2J");
}

TEST(ReportTest, ASearchThatTakesFarLongerThanTheTrainingSaysSo) {
  SearchResult result{.env_steps_per_s = 70'000.0};
  for (const double seconds : {20.0, 32.0}) result.trials.push_back({.outcome = {.seconds = seconds}});
  EXPECT_THAT(search_cost(result, 84'000),
              testing::StartsWith("the search took 52s, and the training itself will "
                                  "take at most 1s: "));
  EXPECT_EQ(search_cost(result, 70'000 * 18), "");
}

TEST(ReportTest, FlagsToCopy) {
  EXPECT_EQ(set_flags({4096, 32}), "--set trainer.num_envs=4096 --set trainer.train_batch_size=131072");
}

}  // namespace
}  // namespace wd::scaling
