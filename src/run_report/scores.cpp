// scores.cpp: interquartile means over the runs of a group.
#include "src/run_report/scores.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "src/base/join.h"
#include "src/run_report/statistics.h"

namespace wd::run_report {
namespace {

using Json = nlohmann::ordered_json;

bool is_score(const std::string& name) {
  return name.ends_with("/recent_return") || (name.starts_with("eval/") && name.ends_with("/return"));
}

double iqm_of_all(const Strata& strata) {
  std::vector<double> values;
  for (const std::vector<double>& stratum : strata)
    values.insert(values.end(), stratum.begin(), stratum.end());
  return interquartile_mean(std::move(values));
}

double iqm_difference(const Strata& strata) {
  return interquartile_mean(strata[1]) - interquartile_mean(strata[0]);
}

Json interval_json(const Strata& strata, const std::function<double(const Strata&)>& statistic) {
  const auto too_few = [](const std::vector<double>& values) { return values.size() < kMinRunsForIqm; };
  if (std::ranges::any_of(strata, too_few))
    return {{"iqm", statistic(strata)}, {"low", nullptr}, {"high", nullptr}};
  const BootstrapInterval interval = bootstrap(strata, statistic);
  return {{"iqm", interval.value}, {"low", interval.low}, {"high", interval.high}};
}

Json spread_json(const std::vector<double>& values) {
  if (values.empty()) return {};
  return {{"median", quantile(values, 0.5)},
          {"min", std::ranges::min(values)},
          {"max", std::ranges::max(values)}};
}

std::vector<double> last_values(const std::vector<RunCurves>& curves, const RunGroup& group,
                                const std::string& metric) {
  std::vector<double> values;
  for (const std::size_t run : group.runs)
    if (const double value = curves[run].last(metric); std::isfinite(value)) values.push_back(value);
  return values;
}

}  // namespace

Json scores_json(const std::vector<RunRecord>& records, const std::vector<RunCurves>& curves,
                 const std::vector<RunGroup>& groups) {
  Json scores = Json::array();
  for (const std::string& metric : metric_names(curves)) {
    if (!is_score(metric)) continue;
    std::map<std::string, std::vector<double>> first;  // by environment
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const std::vector<double> values = last_values(curves, groups[g], metric);
      if (values.empty()) continue;
      Json score = {{"metric", metric}, {"group", g}, {"runs", values.size()}};
      score.update(interval_json({values}, iqm_of_all));
      score.update(spread_json(values));
      const auto [base, is_first] = first.try_emplace(records[groups[g].runs.front()].environment(), values);
      score["difference"] = is_first ? Json() : interval_json({base->second, values}, iqm_difference);
      scores.push_back(std::move(score));
    }
  }
  return scores;
}

Json reached_json(const std::vector<RunRecord>& records, const std::vector<RunGroup>& groups) {
  Json list = Json::array();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<std::string> returns;  // each once
    std::size_t runs = 0;
    std::vector<double> steps, seconds;
    for (const std::size_t run : groups[g].runs) {
      const RunState& state = records[run].state;
      const std::string wanted = records[run].setting("trainer.stop_return");
      if (wanted.empty() || wanted == "none") continue;
      ++runs;
      if (!contains(returns, wanted)) returns.push_back(wanted);
      if (state.text("stop_reason") != "stop_return") continue;
      steps.push_back(state.number("env_steps"));
      seconds.push_back(state.number("wall_s"));
    }
    if (runs == 0) continue;
    list.push_back({{"group", g},
                    {"return", join(returns)},
                    {"runs", runs},
                    {"reached", steps.size()},
                    {"steps", spread_json(steps)},
                    {"seconds", spread_json(seconds)}});
  }
  return list;
}

}  // namespace wd::run_report
