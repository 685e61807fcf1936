// groups.cpp: compares configurations, and names groups after what distinguishes them.
#include "src/run_report/groups.h"

#include <algorithm>
#include <array>
#include <set>

#include "wd/error.h"

namespace wd::report {
namespace {

constexpr std::array<std::string_view, 5> kFree{"trainer.seed", "saving.run_dir", "saving.basedir",
                                                "saving.name", "saving.tag"};

std::map<std::string, std::string> compared_settings(const RunRecord& record) {
  std::map<std::string, std::string> settings = record.settings;
  for (const std::string_view free : kFree) settings.erase(std::string(free));
  return settings;
}

// "lr" for policy.shared.lr, unless another of these settings ends in the same word, and "play.every".
std::string short_name(const std::string& path, const std::vector<SettingValues>& all) {
  constexpr std::array<std::string_view, 3> kKnown{"env.", "trainer.", "policy."};
  const auto last = [](const std::string& full) { return full.substr(full.rfind('.') + 1); };
  const auto same = [&](const SettingValues& other) { return last(other.path) == last(path); };
  const auto begins = [&](std::string_view section) { return path.starts_with(section); };
  return std::ranges::any_of(kKnown, begins) && std::ranges::count_if(all, same) == 1 ? last(path) : path;
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
void label_groups(std::span<const RunRecord> records, const std::vector<std::size_t>& peers,
                  std::vector<RunGroup>& groups) {
  std::vector<RunGroup> compared;
  for (const std::size_t peer : peers) compared.push_back(groups[peer]);
  const std::vector<SettingValues> differing = differences(records, compared);
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

std::vector<RunGroup> group_runs(std::span<const RunRecord> records) {
  std::vector<RunGroup> groups;
  std::map<std::map<std::string, std::string>, std::size_t> known;  // settings to group
  std::map<std::string, std::vector<std::size_t>> by_environment;
  for (std::size_t r = 0; r < records.size(); ++r) {
    if (!records[r].settings.empty()) {
      const auto [found, is_new] = known.emplace(compared_settings(records[r]), groups.size());
      if (!is_new) {
        groups[found->second].runs.push_back(r);
        continue;
      }
    }
    by_environment[records[r].environment()].push_back(groups.size());
    groups.push_back({"", {r}});
  }
  for (const auto& [env, peers] : by_environment) label_groups(records, peers, groups);
  std::map<std::string, int> uses;
  for (RunGroup& group : groups)
    if (const int use = ++uses[group.label]; use > 1) group.label += concat(" (", use, ")");
  return groups;
}

std::vector<SettingValues> differences(std::span<const RunRecord> records, std::span<const RunGroup> groups) {
  std::set<std::string> paths;
  std::vector<std::map<std::string, std::string>> settings;
  for (const RunGroup& group : groups) {
    settings.push_back(compared_settings(records[group.runs.front()]));
    for (const auto& [path, value] : settings.back()) paths.insert(path);
  }
  std::vector<SettingValues> found;
  for (const std::string& path : paths) {
    SettingValues setting{path, {}};
    for (const auto& of_group : settings) {
      const auto value = of_group.find(path);
      setting.values.push_back(value == of_group.end() ? "" : value->second);
    }
    if (std::ranges::adjacent_find(setting.values, std::not_equal_to<>()) != setting.values.end())
      found.push_back(std::move(setting));
  }
  return found;
}

}  // namespace wd::report
