// list.cpp: `wdtrain list`: the runs below a folder, in one table.
#include <unistd.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "src/base/json.h"
#include "src/base/printable.h"
#include "src/base/suggest.h"
#include "src/base/terminal.h"
#include "src/cli/output.h"
#include "src/cli/runs.h"
#include "src/config/numbers.h"
#include "src/report/format.h"
#include "src/run_report/groups.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

using ListJson = nlohmann::ordered_json;

std::string text_cell(const ListJson& value) { return value.is_string() ? value.get<std::string>() : "-"; }
std::string bytes_cell(const ListJson& value) { return report::format_bytes(value.get<std::uint64_t>()); }
template <std::string (*format)(double)>
std::string number_cell(const ListJson& value) {
  return value.is_number() ? format(value.get<double>()) : "-";
}
constexpr auto count_cell = number_cell<report::format_count>,
               return_cell = number_cell<report::format_return>;

struct ListColumn {
  std::string key;  // in JSON, for --sort and --filter
  std::string heading;
  std::string (*cell)(const ListJson& value);
  int importance;  // 0 is kept longest if the terminal is narrow
};
const std::vector<ListColumn> kListColumns{
    {"name", "RUN", text_cell, 0},     {"status", "STATUS", text_cell, 0},
    {"env", "ENV", text_cell, 5},      {"algorithm", "ALGORITHM", text_cell, 6},
    {"steps", "STEPS", count_cell, 2}, {"last", "LAST", return_cell, 1},
    {"best", "BEST", return_cell, 3},  {"steps_per_s", "STEPS/S", count_cell, 7},
    {"bytes", "SIZE", bytes_cell, 8},  {"age_s", "AGE", number_cell<report::format_duration>, 4},
};

// Other words for columns, as they are headed or as users may say.
const std::map<std::string, std::string> kListKeys{
    {"run", "name"}, {"speed", "steps_per_s"}, {"size", "bytes"}, {"age", "age_s"}};

struct ListedRun {
  ListJson json;
  std::map<std::string, std::string> settings;
};

ListJson finite(double value) { return std::isfinite(value) ? ListJson(value) : ListJson(); }
ListJson whole(double value) {
  return std::isfinite(value) ? ListJson(static_cast<std::int64_t>(value)) : ListJson();
}

ListedRun listed(const std::filesystem::path& run, const std::string& base) {
  const run_report::RunRecord record = run_report::read_record(run);
  const std::vector<std::string> policies = record.policies();
  const std::optional<CheckpointInfo> checkpoint = run_report::newest_checkpoint_info(run);
  const double best = checkpoint && checkpoint->best_return ? *checkpoint->best_return : std::nan("");
  const std::string name = run.lexically_relative(std::filesystem::path(base).lexically_normal()).string();
  ListJson json = {{"name", name == "." ? run.filename().string() : name},
                   {"folder", std::filesystem::absolute(run).lexically_normal().string()},
                   {"status", record.state.status},
                   {"stop_reason", record.state.text("stop_reason")},
                   {"env", record.environment()},
                   {"algorithm", record.algorithms()},
                   {"seed", whole(record.state.number("seed"))},
                   {"steps", whole(record.state.number("env_steps"))},
                   {"last", finite(policies.empty() ? std::nan("") : record.last_return(policies.front()))},
                   {"best", finite(best)},
                   {"steps_per_s", finite(record.state.number("env_steps_per_s"))},
                   {"bytes", run_report::bytes_on_disk(run)},
                   {"age_s", finite(record.state.age_s)}};
  return {std::move(json), record.settings};
}

std::vector<std::string> column_keys() {
  std::vector<std::string> keys;
  for (const ListColumn& column : kListColumns) keys.push_back(column.key);
  return keys;
}

std::vector<std::string> filter_keys() {
  std::vector<std::string> keys = column_keys();
  keys.insert(keys.end(), {"seed", "stop_reason"});
  return keys;
}

std::string column_key(const std::string& option, const std::string& word) {
  const auto other = kListKeys.find(word);
  if (other != kListKeys.end()) return other->second;
  parse_word(option, word, filter_keys());
  return word;
}

// Greatest numbers first, texts in alphabetical order, unknown values last.
void sort_runs(std::vector<ListedRun>& runs, const std::string& key) {
  std::ranges::stable_sort(runs, [&key](const ListedRun& a, const ListedRun& b) {
    const ListJson &left = a.json[key], &right = b.json[key];
    if (left.is_null() || right.is_null()) return !left.is_null() && right.is_null();
    return left.is_number() ? left > right : left < right;
  });
}

// Whether texts mean the same value: 1e-3 and 0.001, 10k and 10000, true and True.
bool same_value(const std::string& a, const std::string& b) {
  const auto plain = [](const std::string& text) {
    return text == "True" || text == "TRUE" ? "true" : text == "False" || text == "FALSE" ? "false" : text;
  };
  double left = 0, right = 0;
  using config::Parsed, config::parse_double;
  if (parse_double(a, left) == Parsed::kGood && parse_double(b, right) == Parsed::kGood) return left == right;
  return plain(a) == plain(b) || a == concat("\"", b, "\"");  // texts are quoted in config.yaml
}

// "env=cartpole", "lr=1e-3": a column, or settings of that name, one of which must have the value.
// `settings`: all paths of settings that any run has.
void filter_runs(std::vector<ListedRun>& runs, const std::string& filter,
                 const std::set<std::string>& settings) {
  const std::size_t equals = filter.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UsageError("--filter " + filter + ": must be KEY=VALUE, for example env=cartpole");
  const std::string word = filter.substr(0, equals), value = filter.substr(equals + 1);
  const std::vector<std::string> columns = filter_keys();
  if (!contains(columns, word) && !kListKeys.contains(word)) {
    const std::vector<std::string> paths =
        run_report::paths_of("--filter " + filter, word, settings, columns);
    std::erase_if(runs, [&](const ListedRun& run) {
      return std::ranges::none_of(paths, [&](const std::string& path) {
        const auto found = run.settings.find(path);
        return found != run.settings.end() && same_value(found->second, value);
      });
    });
    return;
  }
  const std::string key = column_key("--filter", word);
  std::erase_if(runs, [&](const ListedRun& run) {
    const ListJson& found = run.json[key];
    return !same_value(found.is_string() ? found.get<std::string>() : dump(found), value);
  });
}

using ListTable = std::vector<std::vector<std::string>>;

int width_of(const ListTable& rows) {
  std::size_t width = 0;
  for (const std::string& line : split(table(rows, 0), '\n')) width = std::max(width, line.size());
  return static_cast<int>(width);
}

// Leaves out the least important columns until the table fits, then the middle of long names. Says which
// columns are missing.
// `shown`: paths of settings that are columns too.
std::string fitted(const std::vector<ListedRun>& runs, const std::vector<std::string>& shown, int width) {
  std::vector<ListColumn> columns = kListColumns;
  for (const std::string& path : shown) columns.push_back({path, path, text_cell, 0});
  const auto rows = [&] {
    ListTable lines(1);
    for (const ListColumn& column : columns) lines[0].push_back(column.heading);
    for (const ListedRun& run : runs) {
      lines.emplace_back();
      for (const ListColumn& column : columns)
        lines.back().push_back(on_one_line(column.cell(run.json[column.key])));
    }
    return lines;
  };
  std::string missing;
  while (columns.size() > 2 && width_of(rows()) > width) {
    const auto least = std::ranges::max_element(columns, {}, &ListColumn::importance);
    missing += concat(missing.empty() ? "" : ", ", least->heading);
    columns.erase(least);
  }
  ListTable lines = rows();
  constexpr std::size_t kShortest = 12;
  if (const int excess = width_of(lines) - width; excess > 0) {
    std::size_t longest = 0;
    for (const auto& line : lines) longest = std::max(longest, line[0].size());
    const std::size_t room =
        std::max(longest - std::min(longest, static_cast<std::size_t>(excess)), kShortest);
    for (auto& line : lines)
      if (line[0].size() > room) line[0] = "..." + line[0].substr(line[0].size() - room + 3);
  }
  const std::string note = "no room for " + missing + ": widen the terminal, or use --json\n";
  return table(lines, 0) + (missing.empty() ? "" : note);
}

}  // namespace

int list_runs(const CommandLine& line) {
  Arguments arguments(
      line, "list",
      "List the runs below a folder: status, environment, steps, returns of the first policy, "
      "speed, size on disk, and time since the last change.");
  std::string folder = "runs", sort = "name";
  std::vector<std::string> filters, names, shown;
  bool json = false;
  arguments.word("FOLDER", folder, "folder to search (runs)");
  arguments.option("--sort", sort, "KEY", "column to sort by: " + join(column_keys()) + " (name)");
  arguments.repeatable("--filter", filters, "KEY=VALUE",
                       "only runs with this value of a column, or of a setting by its path or parts of it: "
                       "status=running, lr=1e-3");
  arguments.repeatable("--show", names, "SETTING,...",
                       "settings that are columns too, by their paths or parts of them: trainer.seed,lr");
  arguments.flag("--json", json, "print a list of JSON objects");
  if (!arguments.parse()) return 0;
  const std::string key = column_key("--sort", sort);
  std::vector<ListedRun> runs;
  for (const std::filesystem::path& run : runs_below(folder)) runs.push_back(listed(run, folder));
  const std::size_t found = runs.size();
  std::set<std::string> settings;
  for (const ListedRun& run : runs)
    for (const auto& [path, value] : run.settings) settings.insert(path);
  for (const std::string& filter : filters) filter_runs(runs, filter, settings);
  for (const std::string& option : names)
    for (const std::string& name : split(option, ','))
      for (const std::string& path : run_report::paths_of("--show " + option, name, settings))
        if (!contains(shown, path)) shown.push_back(path);
  for (ListedRun& run : runs)
    for (const std::string& path : shown)
      run.json[path] = run.settings.contains(path) ? ListJson(run.settings.at(path)) : ListJson();
  sort_runs(runs, key);
  if (json) {
    ListJson all = ListJson::array();
    for (const ListedRun& run : runs) all.push_back(run.json);
    print(dump(all, 2) + "\n");
  } else if (runs.empty()) {
    print(concat("none of ", report::counted(static_cast<std::int64_t>(found), "run"), " below ", folder,
                 " matches ", join(filters, " and "), "\n"));
  } else {
    const bool terminal = ::isatty(STDOUT_FILENO) == 1;
    print(fitted(runs, shown, terminal ? terminal_width(STDOUT_FILENO) : std::numeric_limits<int>::max()));
  }
  return 0;
}

}  // namespace wd::cli
