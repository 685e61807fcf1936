// report.cpp: collects what a report shows, as JSON for its page.
#include "src/run_report/report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "src/autoscale/report.h"
#include "src/base/atomic_file.h"
#include "src/base/date.h"
#include "src/base/files.h"
#include "src/base/json.h"
#include "src/play/packed.h"
#include "src/run_report/links.h"
#include "src/run_report/page.h"
#include "src/run_report/scores.h"
#include "wd/error.h"
#include "wd/metrics.h"

namespace wd::run_report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Values on a page, whatever the number and the length of its runs: less than 2 MB.
constexpr std::size_t kMaxValues = 150'000;
constexpr std::size_t kMinBuckets = 20;

// Six significant digits: no chart shows more.
Json short_number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return std::strtod(text.data(), nullptr);
}

// Whole numbers as their differences, which compress well.
template <typename Values, typename Number>
Json whole_differences(const Values& values, const Number& number) {
  Json list = Json::array();
  std::int64_t before = 0;
  for (const auto& value : values) {
    const auto whole = static_cast<std::int64_t>(std::llround(number(value)));
    list.push_back(whole - before);
    before = whole;
  }
  return list;
}

Json curve_json(std::size_t run, ThinnedCurve curve, std::size_t max_buckets) {
  curve.limit(max_buckets);
  const std::vector<CurvePoint> points = curve.points();
  Json values = Json::array();
  for (const CurvePoint& point : points) values.push_back(short_number(point.value));
  constexpr double kMilliseconds = 1000.0;
  return {{"run", run},
          {"steps", whole_differences(points, [](const CurvePoint& p) { return p.at.env_steps; })},
          {"ms", whole_differences(points, [](const CurvePoint& p) { return p.at.wall_s * kMilliseconds; })},
          {"values", values}};
}

Json band_json(std::size_t group, const Band& band) {
  Json json = {{"group", group},
               {"iterations", band.iterations},
               {"steps", whole_differences(band.env_steps, [](double steps) { return steps; })}};
  const auto put = [&json](const char* key, const std::vector<double>& values) {
    Json& list = json[key] = Json::array();
    for (const double value : values) list.push_back(short_number(value));
  };
  put("low", band.low);
  put("middle", band.middle);
  put("high", band.high);
  return json;
}

// Number of buckets per curve with which all curves fit on the page.
std::size_t buckets_per_curve(const std::vector<RunCurves>& curves) {
  std::size_t count = 0;
  for (const RunCurves& run : curves) count += run.names.size();
  constexpr std::size_t kValuesPerBucket = 3;  // two of the curve, one of the band of its group
  return std::clamp(kMaxValues / (kValuesPerBucket * std::max<std::size_t>(count, 1)), kMinBuckets,
                    kMaxBuckets);
}

Json metric_json(const std::string& name, const std::vector<RunCurves>& runs,
                 const std::vector<RunGroup>& groups, std::size_t max_buckets) {
  Json curves = Json::array(), bands = Json::array();
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const auto found = runs[r].curves.find(name);
    if (found != runs[r].curves.end()) curves.push_back(curve_json(r, found->second, max_buckets));
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<ThinnedCurve> members;
    for (const std::size_t run : groups[g].runs) {
      const auto found = runs[run].curves.find(name);
      if (found == runs[run].curves.end()) continue;
      members.push_back(found->second);
      members.back().limit(max_buckets);
    }
    if (members.size() < 2) continue;
    if (const Band band = band_of(members); !band.middle.empty()) bands.push_back(band_json(g, band));
  }
  const Metric* metric = find_metric(name);
  return {
      {"name", name}, {"help", metric == nullptr ? "" : metric->help}, {"curves", curves}, {"bands", bands}};
}

// The last evaluation of a run: [{"role", "mean", "low", "high"}].
Json evaluation_json(const RunCurves& run) {
  Json roles = Json::array();
  for (const std::string& name : run.names) {
    if (!name.starts_with("eval/") || !name.ends_with("/return")) continue;
    const std::string role = name.substr(5, name.size() - 5 - std::string_view("/return").size());
    roles.push_back({{"role", role},
                     {"mean", run.last(name)},
                     {"low", run.last(name + "_low")},
                     {"high", run.last(name + "_high")}});
  }
  return roles;
}

// What --auto_scale has found for the run; null if it did not search, or the file is not one of the program.
Json search_json(const fs::path& run) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 20;
  try {
    const std::optional<std::string> text = read_regular(run / "autoscale.json", kMaxBytes);
    return text ? Json::parse(scaling::report_json(scaling::parse_report(*text))) : Json();
  } catch (const std::exception&) {
    return {};
  }
}

Json run_json(const RunRecord& record, const RunCurves& curves, std::size_t group, const fs::path& page) {
  const RunState& state = record.state;
  Json time = Json::array(), returns = Json::object();
  for (const auto& [part, seconds] : curves.seconds) time.push_back({{"part", part}, {"seconds", seconds}});
  for (const std::string& policy : record.policies()) returns[policy] = record.last_return(policy);
  return {{"path", record.folder.string()},
          {"group", group},
          {"status", state.status},
          {"stop_reason", state.text("stop_reason")},
          {"env", record.environment()},
          {"algorithm", record.algorithms()},
          {"seed", record.setting("trainer.seed")},
          {"device", state.text("device")},
          {"workers", state.number("workers")},
          {"iterations", state.number("iterations")},
          {"env_steps", state.number("env_steps")},
          {"wall_s", state.number("wall_s")},
          {"steps_per_s", state.number("env_steps_per_s")},
          {"agent_steps_per_s", state.number("agent_steps_per_s")},
          {"memory", state.number("peak_memory_bytes")},
          {"returns", returns},
          {"hardware", state.summary.value("hardware", Json())},
          {"version", state.summary.value("version", Json())},
          {"rows", curves.rows},
          {"skipped", curves.skipped},
          {"time", time},
          {"search", search_json(record.folder)},
          {"evaluation", evaluation_json(curves)},
          {"rollouts", rollout_links(record.folder, page)}};
}

}  // namespace

Report::Report(const std::vector<fs::path>& runs, const std::vector<std::string>& group_by) {
  for (const fs::path& run : runs) {
    records_.push_back(read_record(run));
    curves_.push_back(read_curves(run));
  }
  groups_ = group_runs(records_, group_by.empty() ? Grouping() : Grouping(group_by, records_));
}

Json Report::scores() const { return scores_json(records_, curves_, groups_); }

Json Report::reached() const { return reached_json(records_, groups_); }

std::string Report::page(const fs::path& page) const {
  Json json = {
      {"created", date("%Y-%m-%d %H:%M", ::localtime_r)}, {"version", WD_VERSION}, {"runs", Json::array()}};
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    json["groups"].push_back({{"label", groups_[g].label}, {"runs", groups_[g].runs}});
    for (const std::size_t run : groups_[g].runs)
      json["runs"][run] = run_json(records_[run], curves_[run], g, page);
  }
  json["settings"] = Json::array();
  for (const SettingValues& setting : differences(records_, groups_))
    json["settings"].push_back({{"path", setting.path}, {"values", setting.values}});
  json["configuration"] = Json::array();
  if (groups_.size() == 1)
    for (const auto& [path, value] : records_[groups_[0].runs.front()].settings)
      json["configuration"].push_back({{"path", path}, {"value", value}});
  json["reached"] = reached();
  json["scores"] = scores();
  json["metrics"] = Json::array();
  const std::size_t max_buckets = buckets_per_curve(curves_);
  for (const std::string& name : metric_names(curves_))
    json["metrics"].push_back(metric_json(name, curves_, groups_, max_buckets));

  const std::string text = dump(json);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  std::string html = kReportPage;
  fill_in(html, "{{REPORT}}", compressed_text({bytes, text.size()}));
  return html;
}

bool write_run_report(const fs::path& run) {
  constexpr std::uintmax_t kMaxBytes = std::uintmax_t{1} << 28;
  if (fs::file_size(run / "metrics.jsonl") > kMaxBytes) return false;
  const fs::path page = run / "report.html";
  write_file_atomically(page, Report({run}).page(page), Durability::kReplace);
  return true;
}

}  // namespace wd::run_report
