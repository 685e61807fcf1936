// report_test.cpp: autoscale.json there and back, the table's lines, the picture.
#include "src/autoscale/report.h"

#include <nlohmann/json.hpp>

#include "src/autoscale/picture.h"
#include "src/autoscale/xml.h"
#include "tests/autoscale/fake_machine.h"
#include "tests/run/temporary_folder.h"

namespace wd::scaling {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

Report report_of(FakeMachine machine, std::uint64_t memory = 300 << 20) {
  SearchOptions options;
  options.start = {64, 32};
  options.limits.memory_bytes = memory;
  options.sizes = {.per_replica = 900.0, .per_replica_step = 90.0};
  return {.env = "tag_continuous",
          .device = "a <fake> \"machine\" & more",
          .limits = options.limits,
          .result = search_and_check(options, machine)};
}

TEST(ReportTest, JsonComesBackAsItWas) {
  FakeMachine noisy;
  noisy.noise = 0.01;
  Report report = report_of(noisy);
  EXPECT_EQ(report.result.status, Status::kChosen);
  EXPECT_EQ(parse_report(report_json(report)), report);
  report.limits = {};
  report.objective = Objective::kMemory;
  report.num_workers = 4;
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
  EXPECT_EQ(json["tries"].size(), report.result.tries.size());
  EXPECT_EQ(json["status"], "chosen");
}

// Each path set to each of these values is refused, never taken or crashed on.
TEST(ReportTest, WhatCannotBeIsRefused) {
  const Json good = Json::parse(report_json(report_of({})));
  const std::vector<std::pair<const char*, std::vector<Json>>> wrong = {
      {"/version", {0, 2, "1", nullptr}},
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
  Json huge = good;  // a product that no integer holds
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
  const Outcome outcome{.kind = Kind::kOutOfMemory,
                        .bytes = 5,
                        .env_steps_per_s = 0.1,
                        .seconds = 1.5,
                        .detail = "line\n\"two\""};
  const std::string text = outcome_json(outcome);
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  EXPECT_EQ(parse_outcome(text), outcome);
  for (const char* const bad : {"", "[]", "null", "{}", "{\"outcome\":\"fits\"}"})
    EXPECT_THROW(parse_outcome(bad), std::runtime_error) << bad;
  // A child that writes NaN for its speed is not believed.
  EXPECT_THROW(parse_outcome(outcome_json({.kind = Kind::kFits, .env_steps_per_s = std::nan("")})),
               std::runtime_error);
  EXPECT_NO_THROW(parse_outcome(outcome_json({.detail = "\xff"})));
}

TEST(ReportTest, LinesOfTheTable) {
  EXPECT_EQ(table_heading(),
            "stage       replicas         T         batch      memory   predicted     env/s  outcome");
  EXPECT_EQ(table_line({Stage::kReplicas,
                        {4096, 32},
                        {.kind = Kind::kFits, .bytes = 812 << 20, .env_steps_per_s = 1.234e6},
                        std::uint64_t{2} << 30}),
            "replicas        4096        32        131072     812 MiB     2.0 GiB     1.23M  fits");
  EXPECT_EQ(
      table_line({Stage::kRollout, {4096, 64}, {.kind = Kind::kTooSlow, .detail = "a\nb\x1b[2J"}, 0}),
      "rollout         4096        64        262144           -           -         -  too slow: a b?[2J");
}

TEST(ReportTest, FlagsToCopy) {
  EXPECT_EQ(set_flags({4096, 32}), "--set trainer.num_envs=4096 --set trainer.train_batch_size=131072");
}

// --- the picture -----------------------------------------------------------------------------------------------------

// Whether tags nest, attributes are quoted and every & begins an entity: the first fault, or nothing.
std::string xml_fault(std::string_view text) {
  std::vector<std::string> open;
  while (!text.empty()) {
    const std::size_t tag = text.find('<');
    for (std::size_t at = 0; (at = text.substr(0, tag).find('&', at)) != std::string::npos; ++at) {
      const std::string_view entity = text.substr(at, text.find(';', at) - at);
      if (entity != "&amp" && entity != "&lt" && entity != "&gt" && entity != "&quot") return "a lone &";
    }
    if (tag == std::string::npos) break;
    const std::size_t end = text.find('>', tag);
    if (end == std::string::npos) return "an open tag";
    const std::string_view inside = text.substr(tag + 1, end - tag - 1);
    if (inside.find('<') != std::string::npos) return "a lone <";
    if (std::ranges::count(inside, '"') % 2 != 0) return "an open quote";
    const std::string name(inside.substr(0, inside.find_first_of(" /", 1)));
    if (inside.starts_with('/')) {
      if (open.empty() || '/' + open.back() != inside) return "tags cross at " + std::string(inside);
      open.pop_back();
    } else if (!inside.ends_with('/')) {
      open.push_back(name);
    }
    text.remove_prefix(end + 1);
  }
  return open.empty() ? "" : "open: " + open.back();
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

TEST(PictureTest, IsXmlWithEveryTryAndNothingThatRuns) {
  FakeMachine machine;
  machine.rate = [](const Probe& p) { return static_cast<double>(p.num_envs); };
  machine.trouble = [](const Probe& p, int) {
    return p.num_envs > 8000 ? std::optional(Kind::kTooSlow) : std::nullopt;
  };
  Report report = report_of(machine, 1 << 28);
  report.env = "</text><script>alert(1)</script>";
  report.result.tries.front().outcome.detail = "\x01 <b> & \xff";
  const std::string picture = svg(report);
  EXPECT_EQ(xml_fault(picture), "");
  EXPECT_THAT(picture, Not(HasSubstr("<script")));
  EXPECT_THAT(picture, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(picture, HasSubstr("a &lt;fake&gt; &quot;machine&quot; &amp; more"));
  EXPECT_THAT(picture, HasSubstr("? &lt;b&gt; &amp; ?"));
  EXPECT_EQ(occurrences(picture, "<title>"), report.result.tries.size());
  EXPECT_THAT(picture, HasSubstr("[1/s]"));
  EXPECT_THAT(picture, HasSubstr("chosen:"));
  EXPECT_THAT(picture, HasSubstr("too slow"));
}

TEST(PictureTest, SearchesThatFoundNothingAreDrawnToo) {
  Report empty;
  const Report none = report_of({.memory = 0.0});
  for (const Report& report : {empty, none}) {
    const std::string picture = svg(report);
    EXPECT_EQ(xml_fault(picture), "");
    EXPECT_THAT(picture, Not(HasSubstr("nan")));
    EXPECT_THAT(picture, Not(HasSubstr("inf")));
    EXPECT_THAT(picture, Not(HasSubstr("chosen")));
  }
}

TEST(PictureTest, TheCheckOfThisTestFindsFaults) {
  for (const char* const bad : {"<a>", "<a></b>", "<a>&</a>", "<a b=\"></a>", "<a <b/></a>", "<a"})
    EXPECT_NE(xml_fault(bad), "") << bad;
}

TEST(PictureTest, TextForXml) {
  EXPECT_EQ(xml_text("a<b>&\"c"), "a&lt;b&gt;&amp;&quot;c");
  EXPECT_EQ(xml_text("M\xc3\xbcller \xe2\x82\xac \xf0\x9f\x8e\xb2"),
            "M\xc3\xbcller \xe2\x82\xac \xf0\x9f\x8e\xb2");
  EXPECT_EQ(xml_text(std::string_view("\0\x1b\x7f\n", 4)), "????");
  EXPECT_EQ(xml_text("\xff\xc3"), "??");
  EXPECT_EQ(xml_text("\xef\xbf\xbf"), "?");
}

}  // namespace
}  // namespace wd::scaling
