// status_view.cpp: reads a run's files and puts them into words.
#include "src/cli/status_view.h"

#include <algorithm>
#include <cmath>

#include "src/base/json.h"
#include "src/base/printable.h"
#include "src/base/program_name.h"
#include "src/cli/output.h"
#include "src/config/numbers.h"
#include "src/metrics/last_lines.h"
#include "src/report/format.h"
#include "src/run/live_table.h"
#include "src/run/seconds_left.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

namespace fs = std::filesystem;
using StatusJson = nlohmann::ordered_json;
using run_report::number_in;

double setting_number(const StatusView& now, const std::string& path) {
  double value = 0.0;
  return config::parse_double(now.record.setting(path), value) == config::Parsed::kGood ? value
                                                                                        : std::nan("");
}

std::string ago(double seconds) {
  return std::isfinite(seconds) ? report::format_duration(seconds) + " ago" : "at an unknown time";
}

std::string count_text(double value) { return std::isfinite(value) ? report::format_count(value) : "?"; }

// The speed of the last interval, or of the whole training if it is not known.
double speed_of(const StatusView& now) {
  const double recent = number_in(now.row, "time/env_steps_per_s");
  return recent > 0.0 ? recent : now.record.state.number("env_steps_per_s");
}

run::TimeLeft time_left_of(const StatusView& now) {
  const run_report::RunState& state = now.record.state;
  return run::time_left(
      state.number("env_steps"), state.number("wall_s"),
      {setting_number(now, "trainer.total_steps"), setting_number(now, "trainer.max_seconds")});
}

std::string progress_text(const StatusView& now) {
  const run_report::RunState& state = now.record.state;
  const double done = state.number("env_steps"), total = setting_number(now, "trainer.total_steps");
  std::string text = concat("iteration ", count_text(state.number("iterations")), ", ", count_text(done));
  if (total > 0.0) text += concat(" of ", count_text(total));
  text += " steps";
  if (total > 0.0 && std::isfinite(done)) text += report::format_number(" (%.1f %%)", 100.0 * done / total);
  if (const double speed = speed_of(now); std::isfinite(speed))
    text += concat(", ", count_text(speed), " steps/s");
  const auto [left, by_time] = time_left_of(now);
  if (state.is_active() && std::isfinite(left))
    text += (by_time ? ", stops in " : ", ETA ") + report::format_duration(left);
  return text;
}

// "tagger 3.21, runner -4.50": by role where a policy acts for several.
std::string returns_text(const StatusView& now) {
  std::vector<std::string> texts;
  for (const std::string& policy : now.record.policies()) {
    const std::string roles = now.record.setting("policy." + policy + ".roles");
    const bool same = roles.empty() || roles == "[" + policy + "]";
    texts.push_back(
        concat(policy, same ? "" : " " + roles, " ", report::format_return(now.record.last_return(policy))));
  }
  return join(texts);
}

std::string evaluation_text(const StatusView& now) {
  std::vector<std::string> texts;
  if (!now.evaluated.is_object()) return "";
  for (const auto& [name, value] : now.evaluated.items()) {
    if (!name.starts_with("eval/") || !name.ends_with("/return") || !value.is_number()) continue;
    texts.push_back(concat(name.substr(5, name.size() - 12), " ", report::format_return(value.get<double>()),
                           " [", report::format_return(number_in(now.evaluated, name + "_low")), ", ",
                           report::format_return(number_in(now.evaluated, name + "_high")), "]"));
  }
  if (texts.empty()) return "";
  return concat(join(texts), " in iteration ", count_text(number_in(now.evaluated, "iteration")));
}

std::string checkpoint_text(const StatusView& now) {
  if (!now.checkpoint) return "none";
  std::string text = concat("iteration ", now.checkpoint->counts.iteration, ", ", ago(now.checkpoint_age_s));
  if (now.checkpoint->best_return)
    text += concat("; best: ", now.checkpoint->best, " with ",
                   report::format_return(*now.checkpoint->best_return));
  return text;
}

}  // namespace

StatusView read_view(const fs::path& run) {
  constexpr std::size_t kLines = 200;
  StatusView now{run_report::read_record(run), {}, {}, run_report::newest_checkpoint_info(run)};
  const std::vector<std::string> lines = last_lines(run / "metrics.jsonl", kLines);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const bool evaluated = line->find("\"eval/") != std::string::npos;
    if (!now.row.is_null() && !evaluated) continue;
    const StatusJson row = parse_json<StatusJson>(*line);
    if (!row.is_object()) continue;
    if (now.row.is_null()) now.row = row;
    if (evaluated) {
      now.evaluated = row;
      break;
    }
  }
  // Metrics are written more often than the summary, which a killed run leaves behind.
  StatusJson& summary = now.record.state.summary;
  if (number_in(now.row, "iteration") > number_in(summary, "iterations")) {
    summary.update({{"iterations", now.row["iteration"]},
                    {"env_steps", now.row["env_steps"]},
                    {"wall_s", now.row["time/wall_s"]}});
    for (const std::string& policy : now.record.policies())
      summary["mean_return"][policy] = now.row[policy + "/recent_return"];
  }
  now.row_age_s = run_report::age_of(run / "metrics.jsonl");
  now.checkpoint_age_s = run_report::age_of(run / "checkpoints" / "latest" / "manifest.json");
  return now;
}

std::string status_text(const StatusView& now) {
  const run_report::RunState& state = now.record.state;
  const std::string folder = now.record.folder.string();
  const std::string process = state.lock.process > 0
                                  ? concat("process ", state.lock.process, " on ", state.lock.host)
                                  : "its process";
  const auto resume = [&](const std::string& why) {
    return concat(why, "; ", program_name(), " --resume ", folder, " goes on");
  };
  if (state.status == "running") return concat("running: ", process, ", last change ", ago(state.age_s));
  if (state.status == "starting") return "starting: " + process;
  if (state.status == "killed") return resume("killed: " + process + " is gone without having ended the run");
  if (state.status == "unknown")
    return "unknown: there is no readable summary.json, and no process uses the run";
  const std::string text = concat(state.status, ": ", state.text("stop_reason"), ", ", ago(state.age_s));
  return state.status == "finished" ? text : resume(text);
}

std::vector<std::string> status_lines(const StatusView& now, std::size_t table_width) {
  const run_report::RunState& state = now.record.state;
  std::vector<std::vector<std::string>> rows = {{"status", status_text(now)}};
  const double workers = state.number("workers");
  std::string what = now.record.environment();
  if (const std::string algorithms = now.record.algorithms(); !algorithms.empty()) what += ", " + algorithms;
  if (const std::string seed = now.record.setting("trainer.seed"); !seed.empty()) what += ", seed " + seed;
  if (const std::string device = state.text("device"); !device.empty()) what += ", on " + device;
  if (std::isfinite(workers)) what += ", " + report::counted(static_cast<std::int64_t>(workers), "worker");
  rows.push_back({"training", what});
  rows.push_back({"progress", progress_text(now)});
  if (const std::string returns = returns_text(now); !returns.empty()) rows.push_back({"return", returns});
  if (const std::string text = evaluation_text(now); !text.empty()) rows.push_back({"evaluation", text});
  rows.push_back({"checkpoint", checkpoint_text(now)});
  rows.push_back({"metrics", now.row.is_object()
                                 ? concat("iteration ", count_text(number_in(now.row, "iteration")), ", ",
                                          ago(now.row_age_s))
                                 : "none yet"});
  std::vector<std::string> lines = split(without_controls(table(rows, 0)), '\n');
  if (now.row.is_object()) {
    const auto metric = [&now](std::string_view name) { return number_in(now.row, std::string(name)); };
    for (const std::string& line : run::live_table(metric, now.record.policies(), table_width))
      lines.push_back(without_controls(line));
  }
  return lines;
}

StatusJson status_json(const StatusView& now) {
  const run_report::RunState& state = now.record.state;
  const auto summary = [&state](const char* key) {
    const auto found = state.summary.find(key);
    return found != state.summary.end() && found->is_number() ? *found : StatusJson();
  };
  const bool known = state.is_active() && state.lock.process > 0;
  const auto [left, by_time] = time_left_of(now);
  StatusJson json = {{"folder", fs::absolute(now.record.folder).lexically_normal().string()},
                     {"status", state.status},
                     {"stop_reason", state.text("stop_reason")},
                     {"active", state.is_active()},
                     {"process", known ? StatusJson(state.lock.process) : StatusJson()},
                     {"host", known ? StatusJson(state.lock.host) : StatusJson()},
                     {"age_s", state.age_s},
                     {"env", now.record.environment()},
                     {"algorithm", now.record.algorithms()},
                     {"device", state.text("device")},
                     {"workers", summary("workers")},
                     {"seed", summary("seed")},
                     {"iterations", summary("iterations")},
                     {"steps", summary("env_steps")},
                     {"total_steps", setting_number(now, "trainer.total_steps")},
                     {"steps_per_s", speed_of(now)},
                     {"seconds_left", state.is_active() ? StatusJson(left) : StatusJson()},
                     {"ends_by", !state.is_active() || std::isnan(left) ? StatusJson()
                                 : by_time                              ? StatusJson("max_seconds")
                                                                        : StatusJson("total_steps")}};
  json["returns"] = StatusJson::object();
  for (const std::string& policy : now.record.policies())
    json["returns"][policy] = now.record.last_return(policy);
  json["checkpoint"] = StatusJson();
  if (now.checkpoint)
    json["checkpoint"] = {{"iteration", now.checkpoint->counts.iteration},
                          {"age_s", now.checkpoint_age_s},
                          {"best", now.checkpoint->best},
                          {"best_return", now.checkpoint->best_return.value_or(std::nan(""))}};
  json["metrics"] = now.row.is_object() ? now.row : StatusJson();
  json["evaluation"] = now.evaluated.is_object() ? now.evaluated : StatusJson();
  return json;
}

std::string plain_line(const StatusView& now) {
  const std::string returns = returns_text(now);
  return without_controls(concat(now.record.state.status, " | ", progress_text(now),
                                 returns.empty() ? "" : " | return ", returns, "\n"));
}

}  // namespace wd::cli
