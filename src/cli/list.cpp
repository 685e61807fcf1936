// list.cpp: `wdtrain list [DIR]`: the runs below a folder.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "src/base/json.h"
#include "src/base/suggest.h"
#include "src/base/terminal.h"
#include "src/cli/arguments.h"
#include "src/cli/output.h"
#include "src/record/record.h"
#include "src/report/format.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string returns_text(const RunRecord& run) {
  std::vector<std::string> returns;
  for (const auto& [policy, value] : run.mean_return) returns.push_back(run::format_return(value));
  return returns.empty() ? "-" : join(returns);
}

std::string steps_text(const RunRecord& run) {
  const std::string done = run::format_count(static_cast<double>(run.env_steps));
  return run.total_steps > 0 ? concat(done, "/", run::format_count(static_cast<double>(run.total_steps)))
                             : done;
}

Json json_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

// A property of runs. Text and numbers are compared as what they are; unknown numbers come last.
struct Key {
  const char* name;
  const char* heading;
  int importance;  // columns of the least importance (the largest number) are dropped on a narrow terminal
  std::function<std::string(const RunRecord&)> text;
  std::function<Json(const RunRecord&)> value;
};

const std::vector<Key>& keys() {
  static const std::vector<Key> all{
      {"run", "RUN", 0, [](const RunRecord& run) { return run.folder.string(); },
       [](const RunRecord& run) { return Json(run.folder.string()); }},
      {"status", "STATUS", 1, [](const RunRecord& run) { return run.status; },
       [](const RunRecord& run) { return Json(run.status); }},
      {"env", "ENV", 4, [](const RunRecord& run) { return run.env; },
       [](const RunRecord& run) { return Json(run.env); }},
      {"algorithm", "ALGORITHM", 7,
       [](const RunRecord& run) { return run.algorithm.empty() ? "-" : run.algorithm; },
       [](const RunRecord& run) { return Json(run.algorithm); }},
      {"seed", "SEED", 8, [](const RunRecord& run) { return std::to_string(run.seed); },
       [](const RunRecord& run) { return Json(run.seed); }},
      {"steps", "STEPS", 3, steps_text, [](const RunRecord& run) { return Json(run.env_steps); }},
      {"return", "RETURN", 2, returns_text,
       [](const RunRecord& run) { return json_or_null(run.first_return()); }},
      {"best", "BEST", 5,
       [](const RunRecord& run) { return run.best_return ? run::format_return(*run.best_return) : "-"; },
       [](const RunRecord& run) { return run.best_return ? Json(*run.best_return) : Json(); }},
      {"speed", "STEPS/S", 9, [](const RunRecord& run) { return run::format_count(run.steps_per_s); },
       [](const RunRecord& run) { return json_or_null(run.steps_per_s); }},
      {"time", "TIME", 10, [](const RunRecord& run) { return run::format_duration(run.wall_s); },
       [](const RunRecord& run) { return json_or_null(run.wall_s); }},
      {"size", "SIZE", 11, [](const RunRecord& run) { return run::format_bytes(run.bytes); },
       [](const RunRecord& run) { return Json(run.bytes); }},
      {"age", "AGE", 6, [](const RunRecord& run) { return run::format_duration(run.age_s); },
       [](const RunRecord& run) { return json_or_null(run.age_s); }},
  };
  return all;
}

const Key& key_of(const std::string& option, const std::string& name) {
  std::vector<std::string> names;
  for (const Key& key : keys()) names.emplace_back(key.name);
  return keys()[parse_word(option, name, names)];
}

void sort_by(const Key& key, bool reverse, std::vector<RunRecord>& runs) {
  std::ranges::stable_sort(runs, [&](const RunRecord& a, const RunRecord& b) {
    const Json x = key.value(a), y = key.value(b);
    if (x.is_null() || y.is_null()) return !x.is_null();
    return reverse ? y < x : x < y;
  });
}

void filter_by(const std::string& text, std::vector<RunRecord>& runs) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) throw UsageError(concat("--filter ", text, ": must be KEY=VALUE"));
  const Key& key = key_of("--filter", text.substr(0, equals));
  const std::string wanted = text.substr(equals + 1);
  std::erase_if(runs, [&](const RunRecord& run) {
    const Json value = key.value(run);
    return (value.is_string() ? value.get<std::string>() : dump(value)) != wanted;
  });
}

std::string table_of(const std::vector<RunRecord>& runs, std::vector<const Key*> columns) {
  std::vector<std::vector<std::string>> rows(1);
  for (const Key* key : columns) rows[0].emplace_back(key->heading);
  for (const RunRecord& run : runs) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const Key* key : columns) row.push_back(key->text(run));
  }
  return table(rows, 0);
}

// The table with as many columns as fit a terminal.
std::string fitting_table(const std::vector<RunRecord>& runs) {
  std::vector<const Key*> columns;
  for (const Key& key : keys()) columns.push_back(&key);
  const auto width = [](const std::string& text) {
    std::size_t widest = 0;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = text.find('\n', begin);
      widest = std::max(widest, end - begin);
      begin = end + 1;
    }
    return widest;
  };
  std::string text = table_of(runs, columns);
  if (::isatty(STDOUT_FILENO) == 0) return text;
  const auto room = static_cast<std::size_t>(run::terminal_width(STDOUT_FILENO));
  constexpr std::size_t kFewest = 3;
  while (columns.size() > kFewest && width(text) > room) {
    columns.erase(std::ranges::max_element(columns, {}, &Key::importance));
    text = table_of(runs, columns);
  }
  return text;
}

Json json_of(const RunRecord& run) {
  Json json = Json::object();
  for (const Key& key : keys()) json[key.name] = key.value(run);
  json["total_steps"] = run.total_steps;
  json["iterations"] = run.iterations;
  json["device"] = run.device;
  json["stop_reason"] = run.stop_reason;
  json["holder"] = run.holder;
  json["returns"] = Json::object();
  for (const auto& [policy, value] : run.mean_return) json["returns"][policy] = json_or_null(value);
  return json;
}

}  // namespace

int list(const CommandLine& line) {
  Arguments arguments(line, "list",
                      "List the runs below a folder: status, steps, returns, speed, size, age.");
  std::string folder = "runs", sort = "age";
  std::vector<std::string> filters;
  bool reverse = false, json = false;
  arguments.word("DIR", folder, "folder that holds runs (runs)");
  arguments.option("--sort", sort, "KEY", "order by this column (age)");
  arguments.flag("--reverse", reverse, "in descending order");
  arguments.repeatable("--filter", filters, "KEY=VALUE", "only runs with this value; may be repeated");
  arguments.flag("--json", json, "as JSON");
  if (!arguments.parse()) return 0;
  const Key& key = key_of("--sort", sort);
  std::vector<RunRecord> runs = find_runs(folder);
  const std::size_t all = runs.size();
  for (const std::string& filter : filters) filter_by(filter, runs);
  sort_by(key, reverse, runs);
  if (json) {
    Json list = Json::array();
    for (const RunRecord& run : runs) list.push_back(json_of(run));
    print(dump(list, 1) + "\n");
  } else if (runs.empty()) {
    print(all == 0 ? concat("no run is below ", folder, "\n")
                   : concat("none of the ", run::counted(static_cast<std::int64_t>(all), "run"), " below ",
                            folder, " passes the filter\n"));
  } else {
    print(fitting_table(runs));
  }
  return 0;
}

}  // namespace wd::cli
