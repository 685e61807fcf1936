// profile_report.cpp: writes a profile as a table and as JSON.
#include <nlohmann/json.hpp>
#include <numeric>

#include "src/report/format.h"
#include "src/report/table.h"
#include "src/trainer/profiler.h"
#include "wd/error.h"

namespace wd {
namespace {

using Json = nlohmann::ordered_json;

std::string number(double value, const char* format = "%.3f") { return report::format_number(format, value); }
std::string percent(double part, double whole) {
  return whole > 0.0 ? number(100.0 * part / whole, "%.1f %%") : "-";
}

// Rollouts are one single phase only if a GPU replays them.
bool is_told(const ProfileReport& report, std::size_t phase) {
  return phase != static_cast<std::size_t>(Phase::kRollout) || report.phases[phase] > 0.0;
}

// Time of threads outside all operations: other code, and waiting.
double rest(const ProfileReport& report, Phase phase) {
  double seconds = report.phases[static_cast<std::size_t>(phase)] * report.threads;
  for (const profile::Operation& one : report.operations)
    if (one.phase == phase) seconds -= one.seconds;
  return std::max(0.0, seconds);
}

}  // namespace

std::string profile_text(const ProfileReport& report) {
  const double n = report.iterations, per_ms = 1e3 / n,
               all = std::accumulate(report.phases.begin(), report.phases.end(), 0.0);
  std::string text =
      concat("profile of ", report.iterations, " iterations: ", report.env, " on ", report.device_name, ", ",
             number(per_ms * report.seconds), " ms an iteration, ",
             report::format_count(static_cast<double>(report.env_steps) / report.seconds), " env/s\n\n");
  std::vector<std::vector<std::string>> rows = {{"phase", "ms an iteration", "share"}};
  for (std::size_t k = 0; k < report.phases.size(); ++k) {
    if (!is_told(report, k)) continue;
    rows.push_back({kPhaseNames[k], number(per_ms * report.phases[k]), percent(report.phases[k], all)});
  }
  text += report::table(rows, 0) + "\n";
  if (report.device == "cuda") {
    rows = {{"kernel", "calls an iteration", "ms an iteration", "share"}};
    for (const profile::KernelTotal& kernel : report.kernels.kernels) {
      rows.push_back({kernel.name, number(static_cast<double>(kernel.calls) / n, "%.4g"),
                      number(per_ms * kernel.seconds), percent(kernel.seconds, report.seconds)});
    }
    return text + report::table(rows, 0) +
           concat("launches by the host: ",
                  number(static_cast<double>(report.kernels.launches) / static_cast<double>(report.steps),
                         "%.4g"),
                  " a step\n");
  }
  const std::string unit = report.threads == 1 ? "ms" : concat("ms, ", report.threads, " threads");
  rows = {{"phase", "operation", "calls an iteration", unit, "share"}};
  const double threads_time = all * report.threads;
  for (std::size_t k = 0; k < report.phases.size(); ++k) {
    if (!is_told(report, k)) continue;
    const auto phase = static_cast<Phase>(k);
    for (const profile::Operation& one : report.operations) {
      if (one.phase != phase) continue;
      rows.push_back({kPhaseNames[k], one.name, number(static_cast<double>(one.calls) / n, "%.4g"),
                      number(per_ms * one.seconds), percent(one.seconds, threads_time)});
    }
    rows.push_back({kPhaseNames[k], "else, and waiting", "", number(per_ms * rest(report, phase)),
                    percent(rest(report, phase), threads_time)});
  }
  return text + report::table(rows, 0);
}

std::string profile_json(const ProfileReport& report) {
  Json phases = Json::object(), operations = Json::array(), kernels = Json::array();
  for (std::size_t k = 0; k < report.phases.size(); ++k)
    if (is_told(report, k)) phases[kPhaseNames[k]] = report.phases[k];
  for (const profile::Operation& one : report.operations) {
    operations.push_back({{"phase", kPhaseNames[static_cast<std::size_t>(one.phase)]},
                          {"operation", one.name},
                          {"calls", one.calls},
                          {"thread_s", one.seconds}});
  }
  Json json{{"env", report.env},
            {"device", report.device},
            {"device_name", report.device_name},
            {"iterations", report.iterations},
            {"env_steps", report.env_steps},
            {"seconds", report.seconds},
            {"phases_s", phases}};
  if (report.device == "cuda") {
    for (const profile::KernelTotal& kernel : report.kernels.kernels)
      kernels.push_back({{"kernel", kernel.name}, {"calls", kernel.calls}, {"device_s", kernel.seconds}});
    json["kernels"] = std::move(kernels);
    json["launches"] = report.kernels.launches;
    json["steps"] = report.steps;
  } else {
    json["threads"] = report.threads;
    json["operations"] = std::move(operations);
  }
  return json.dump(1) + "\n";
}

}  // namespace wd
