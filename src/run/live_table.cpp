// live_table.cpp: selects and formats the metrics that users watch during training.
#include "src/run/live_table.h"

#include <algorithm>
#include <cmath>

#include "src/report/format.h"
#include "src/report/table.h"
#include "wd/error.h"

namespace wd::run {
namespace {

struct Column {
  std::string_view metric, heading;
  int importance;  // 0 is kept longest if the terminal is narrow
};
const std::vector<Column> kColumns{
    {"recent_return", "return", 0}, {"episode_length", "length", 5},     {"entropy", "entropy", 1},
    {"approx_kl", "KL", 2},         {"explained_variance", "ex.var", 3}, {"total_loss", "loss", 4},
    {"grad_norm", "grad norm", 6},  {"learning_rate", "rate", 7},
};
constexpr std::size_t kColumnWidth = 10, kMaxName = 18, kIndent = 2, kFewestColumns = 3;
static_assert(kIndent + kMaxName + kColumnWidth * 8 <= kLiveTableWidth);

std::string cell(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  if (size >= 1e5) return report::format_count(value);
  if (size >= 100.0) return report::format_number("%.1f", value);
  if (size >= 1.0) return report::format_number("%.3f", value);
  if (size >= 1e-3 || size == 0.0) return report::format_number("%.4f", value);
  return report::format_number("%.1e", value);
}

std::string time_split(const MetricLookup& metric, std::size_t width) {
  const std::vector<TimePart> parts = time_parts(metric);
  double all = 0.0;
  for (const TimePart& part : parts) all += part.seconds;
  std::string line;
  for (const auto& [name, seconds] : parts) {
    const double percent = 100.0 * seconds / all;
    if (percent < 0.5) continue;
    const std::string part =
        concat(line.empty() ? "  time: " : ", ", name, report::format_number(" %.0f %%", percent));
    if (line.size() + part.size() > width) break;
    line += part;
  }
  return line;
}

}  // namespace

std::vector<TimePart> time_parts(const MetricLookup& metric) {
  std::vector<TimePart> parts;
  const auto add = [&](std::string_view name, std::string_view of) {
    if (const double seconds = metric(of); std::isfinite(seconds)) parts.push_back({name, seconds});
  };
  if (!std::isfinite(metric("time/environment_s"))) add("rollout", "time/rollout_mean_s");
  add("environment", "time/environment_s");
  add("inference", "time/inference_s");
  add("update", "time/update_s");
  add("checkpoints", "time/checkpoint_s");
  add("evaluation", "time/evaluation_s");
  add("other", "time/other_s");
  return parts;
}

MetricLookup values_of(const MetricsRow& row) {
  return [&row](std::string_view name) {
    const auto found = std::ranges::find(row.values(), name, &std::pair<std::string, double>::first);
    return found == row.values().end() ? std::nan("") : found->second;
  };
}

std::vector<std::string> live_table(const MetricLookup& metric, const std::vector<std::string>& policies,
                                    std::size_t width) {
  const std::size_t longest =
      policies.empty() ? 0 : std::ranges::max(policies, {}, &std::string::size).size();
  const std::size_t name_width = std::clamp<std::size_t>(longest, 6, kMaxName);
  std::vector<Column> columns = kColumns;
  while (kIndent + name_width + kColumnWidth * columns.size() > width) {
    if (columns.size() == kFewestColumns) return {};
    columns.erase(std::ranges::max_element(columns, {}, &Column::importance));
  }
  const auto line = [&](const std::string& name, const auto& text_of) {
    std::string text =
        std::string(kIndent, ' ') + report::padded(name.substr(0, kMaxName), -static_cast<int>(name_width));
    for (const Column& column : columns)
      text += report::padded(text_of(column), static_cast<int>(kColumnWidth));
    return text;
  };
  std::vector<std::string> lines{
      line("policy", [](const Column& column) { return std::string(column.heading); })};
  for (const std::string& policy : policies)
    lines.push_back(
        line(policy, [&](const Column& column) { return cell(metric(concat(policy, "/", column.metric))); }));
  if (const std::string split = time_split(metric, width); !split.empty()) lines.push_back(split);
  return lines;
}

}  // namespace wd::run
