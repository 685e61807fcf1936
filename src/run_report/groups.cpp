// groups.cpp: compares configurations, and names groups after what distinguishes them.
#include "src/run_report/groups.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "src/base/join.h"
#include "src/base/suggest.h"
#include "wd/error.h"

namespace wd::run_report {
namespace {

// Settings that cannot change what is learned, but by rounding: which random numbers are drawn, when training
// ends, on what it runs, what it writes. "saving." is the whole section.
constexpr std::array<std::string_view, 15> kFree{
    "trainer.seed",
    "trainer.num_episodes",
    "trainer.total_steps",
    "trainer.max_seconds",
    "trainer.device",
    "trainer.threads",
    "trainer.cuda_graphs",
    "trainer.chunk_rows",
    "trainer.canary_freq",
    "eval.every",
    "eval.episodes",
    "eval.seed",
    "eval.device",
    "play.",
    "saving.",
};
// These replaced num_envs, train_batch_size and lr before training began: their results are compared.
constexpr std::string_view kAutoscale = "autoscale.";
// Differ between any two runs, so that a table of them says nothing.
constexpr std::array<std::string_view, 2> kAlways{"trainer.seed", "saving."};

using Settings = std::map<std::string, std::string>;

bool is_any(std::span<const std::string_view> names, const std::string& path) {
  return std::ranges::any_of(names, [&](std::string_view name) {
    return name.ends_with('.') ? path.starts_with(name) : path == name;
  });
}

bool is_free(const std::string& path, const Settings& settings) {
  // With stop_on = eval, evaluations decide when training ends and which checkpoint is the best.
  const auto stop = settings.find("trainer.stop_on");
  if (path.starts_with("eval.") && stop != settings.end() && stop->second == "eval") return false;
  return path.starts_with(kAutoscale) || is_any(kFree, path);
}

// Whether the parts of a name are consecutive parts of the path.
bool is_part(const std::string& name, const std::string& path) {
  return concat(".", path, ".").find(concat(".", name, ".")) != std::string::npos;
}

// "lr" for policy.shared.lr, unless another of these settings ends in the same word, and "play.every".
std::string short_name(const std::string& path, const std::vector<SettingValues>& all) {
  constexpr std::array<std::string_view, 3> kKnown{"env.", "trainer.", "policy."};
  const auto last = [](const std::string& full) { return full.substr(full.rfind('.') + 1); };
  const auto same = [&](const SettingValues& other) { return last(other.path) == last(path); };
  const auto begins = [&](std::string_view section) { return path.starts_with(section); };
  return std::ranges::any_of(kKnown, begins) && std::ranges::count_if(all, same) == 1 ? last(path) : path;
}

// The values of groups by path, for the settings in which members of groups differ.
std::vector<SettingValues> differing_settings(const std::vector<std::vector<Settings>>& groups) {
  std::set<std::string> paths;
  for (const std::vector<Settings>& group : groups)
    for (const Settings& settings : group)
      for (const auto& [path, value] : settings) paths.insert(path);
  std::vector<SettingValues> found;
  for (const std::string& path : paths) {
    SettingValues setting{path, {}};
    std::set<std::string> all;
    for (const std::vector<Settings>& group : groups) {
      std::vector<std::string> values;  // each once
      for (const Settings& settings : group) {
        const auto of_path = settings.find(path);
        const std::string value = of_path == settings.end() ? "" : of_path->second;
        if (!contains(values, value)) values.push_back(value);
      }
      all.insert(values.begin(), values.end());
      setting.values.push_back(join(values));
    }
    if (all.size() > 1) found.push_back(std::move(setting));
  }
  return found;
}

// What distinguishes a group from the others of its environment. Empty if there is nothing, or too much for a
// label.
std::string distinction(const std::vector<SettingValues>& differing, std::size_t which) {
  constexpr std::size_t kMaxSettings = 3, kMaxLength = 48;
  if (differing.size() > kMaxSettings) return "";
  std::string label;
  for (const SettingValues& setting : differing) {
    const std::string& value = setting.values[which];
    label += concat(label.empty() ? "" : ", ", short_name(setting.path, differing), "=",
                    value.empty() ? "(none)" : value);
  }
  return label.size() > kMaxLength ? "" : label;
}

// Labels the groups of one environment, `peers` by their places.
void label_groups(std::span<const RunRecord> records, const Grouping& grouping,
                  const std::vector<std::size_t>& peers, std::vector<RunGroup>& groups) {
  std::vector<std::vector<Settings>> settings;
  for (const std::size_t peer : peers)
    settings.push_back({grouping.compared(records[groups[peer].runs.front()])});
  const std::vector<SettingValues> differing = differing_settings(settings);
  for (std::size_t place = 0; place < peers.size(); ++place) {
    RunGroup& group = groups[peers[place]];
    const RunRecord& first = records[group.runs.front()];
    const std::string env = first.environment().empty() ? "run" : first.environment();
    const std::string distinct = distinction(differing, place);
    const std::string label = distinct.empty() ? first.folder.filename().string() : distinct;
    if (peers.size() == 1) {
      group.label = concat(env, first.algorithms().empty() ? "" : " ", first.algorithms());
    } else {
      group.label = peers.size() == groups.size() ? label : concat(env, ", ", label);
    }
  }
}

}  // namespace

std::vector<std::string> paths_of(const std::string& option, const std::string& name,
                                  const std::set<std::string>& paths,
                                  const std::vector<std::string>& others) {
  std::vector<std::string> found, known = others;
  for (const std::string& path : paths) {
    if (!name.empty() && is_part(name, path)) found.push_back(path);
    known.push_back(path);
    std::istringstream parts(path);
    for (std::string part; std::getline(parts, part, '.');) known.push_back(part);
  }
  if (!found.empty()) return found;
  const std::string nearest = did_you_mean(name, known);
  throw UsageError(
      concat(option, ": no run has a setting ", name,
             nearest.empty() ? "; names are those of config.yaml, such as lr or trainer.num_envs" : nearest));
}

Grouping::Grouping(const std::vector<std::string>& names, std::span<const RunRecord> records)
    : names_(names) {
  std::set<std::string> paths;
  for (const RunRecord& record : records)
    for (const auto& [path, value] : record.settings) paths.insert(path);
  for (const std::string& name : names_) paths_of("--group_by " + name, name, paths);
}

std::map<std::string, std::string> Grouping::compared(const RunRecord& record) const {
  Settings settings = record.settings;
  std::erase_if(settings, [&](const auto& setting) {
    const std::string& path = setting.first;
    if (names_.empty()) return is_free(path, record.settings);
    return path != "name" &&
           std::ranges::none_of(names_, [&](const std::string& name) { return is_part(name, path); });
  });
  return settings;
}

std::vector<RunGroup> group_runs(std::span<const RunRecord> records, const Grouping& grouping) {
  std::vector<RunGroup> groups;
  std::map<Settings, std::size_t> known;  // settings to group
  std::map<std::string, std::vector<std::size_t>> by_environment;
  for (std::size_t r = 0; r < records.size(); ++r) {
    if (!records[r].settings.empty()) {
      const auto [found, is_new] = known.emplace(grouping.compared(records[r]), groups.size());
      if (!is_new) {
        groups[found->second].runs.push_back(r);
        continue;
      }
    }
    by_environment[records[r].environment()].push_back(groups.size());
    groups.push_back({"", {r}});
  }
  for (const auto& [env, peers] : by_environment) label_groups(records, grouping, peers, groups);
  std::map<std::string, int> uses;
  for (RunGroup& group : groups)
    if (const int use = ++uses[group.label]; use > 1) group.label += concat(" (", use, ")");
  return groups;
}

std::vector<SettingValues> differences(std::span<const RunRecord> records, std::span<const RunGroup> groups) {
  std::vector<std::vector<Settings>> settings(groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const std::size_t run : groups[g].runs) settings[g].push_back(records[run].settings);
  std::vector<SettingValues> found = differing_settings(settings);
  std::erase_if(found, [](const SettingValues& setting) { return is_any(kAlways, setting.path); });
  return found;
}

}  // namespace wd::run_report
