// live_table.cpp: selects and formats the metrics that users watch during training.
#include "src/run/live_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "src/report/format.h"
#include "src/report/table.h"
#include "wd/error.h"

namespace wd::run {
namespace {

struct Column {
  std::string_view metric, heading;
};
constexpr std::array kColumns{
    Column{"recent_return", "return"}, Column{"episode_length", "length"},     Column{"entropy", "entropy"},
    Column{"approx_kl", "KL"},         Column{"explained_variance", "ex.var"}, Column{"total_loss", "loss"},
    Column{"grad_norm", "grad norm"},  Column{"learning_rate", "rate"},
};
constexpr int kColumnWidth = 10, kMaxName = 18;
static_assert(kMaxName + 2 + kColumnWidth * static_cast<int>(kColumns.size()) <= kLiveTableColumns);

constexpr std::array kParts{
    TimePart{"time/environment_s", "environment"}, TimePart{"time/inference_s", "inference"},
    TimePart{"time/update_s", "update"},           TimePart{"time/checkpoint_s", "checkpoints"},
    TimePart{"time/evaluation_s", "evaluation"},   TimePart{"time/other_s", "other"}};

double value_of(const MetricsRow& row, std::string_view name) {
  const auto found = std::ranges::find(row.values(), name, &std::pair<std::string, double>::first);
  return found == row.values().end() ? std::nan("") : found->second;
}

std::string cell(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  if (size >= 1e5) return format_count(value);
  if (size >= 100.0) return format_number("%.1f", value);
  if (size >= 1.0) return format_number("%.3f", value);
  if (size >= 1e-3 || size == 0.0) return format_number("%.4f", value);
  return format_number("%.1e", value);
}

std::string time_split(const MetricsRow& row) {
  std::vector<std::pair<std::string, double>> parts;
  for (const auto& [metric, heading] : kParts) {
    const double seconds = value_of(row, metric);
    if (std::isfinite(seconds)) parts.emplace_back(heading, seconds);
  }
  if (!std::isfinite(value_of(row, "time/environment_s"))) {
    const double rollout = value_of(row, "time/rollout_mean_s");
    if (std::isfinite(rollout)) parts.insert(parts.begin(), {"rollout", rollout});
  }
  const double all = std::accumulate(parts.begin(), parts.end(), 0.0,
                                     [](double sum, const auto& part) { return sum + part.second; });
  std::string line;
  for (const auto& [name, seconds] : parts) {
    const double percent = 100.0 * seconds / all;
    if (percent >= 0.5) line += concat(line.empty() ? "" : ", ", name, format_number(" %.0f %%", percent));
  }
  return line;
}

}  // namespace

std::span<const TimePart> time_parts() { return kParts; }

std::vector<std::string> live_table(const MetricsRow& row, const std::vector<std::string>& policies) {
  const std::size_t longest = std::ranges::max(policies, {}, &std::string::size).size();
  const int width = static_cast<int>(std::clamp<std::size_t>(longest, 6, kMaxName));
  std::string headings = "  " + padded("policy", -width);
  for (const Column& column : kColumns) headings += padded(std::string(column.heading), kColumnWidth);
  std::vector<std::string> lines{headings};
  for (const std::string& policy : policies) {
    std::string line = "  " + padded(policy.substr(0, kMaxName), -width);
    for (const Column& column : kColumns)
      line += padded(cell(value_of(row, concat(policy, "/", column.metric))), kColumnWidth);
    lines.push_back(line);
  }
  if (const std::string split = time_split(row); !split.empty()) lines.push_back("  time: " + split);
  return lines;
}

}  // namespace wd::run
