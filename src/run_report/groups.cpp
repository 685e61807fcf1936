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
std::string distinction(std::span<const RunRecord> records, const std::vector<RunGroup>& peers,
                        std::size_t which) {
  constexpr std::size_t kMaxSettings = 3, kMaxLength = 48;
  const std::vector<SettingValues> differing = differences(records, peers);
  if (differing.size() > kMaxSettings) return "";
  std::string label;
  for (const SettingValues& setting : differing) {
    const std::string& value = setting.values[which];
    label += concat(label.empty() ? "" : ", ", short_name(setting.path, differing), "=",
                    value.empty() ? "(none)" : value);
  }
  return label.size() > kMaxLength ? "" : label;
}

std::string label_of(std::span<const RunRecord> records, const std::vector<RunGroup>& groups,
                     const RunGroup& group) {
  const RunRecord& first = records[group.runs.front()];
  std::vector<RunGroup> peers;
  std::size_t place = 0;
  for (const RunGroup& other : groups) {
    if (records[other.runs.front()].environment() != first.environment()) continue;
    if (&other == &group) place = peers.size();
    peers.push_back(other);
  }
  const std::string env = first.environment().empty() ? "run" : first.environment();
  if (peers.size() == 1) return concat(env, first.algorithms().empty() ? "" : " ", first.algorithms());
  const std::string distinct = distinction(records, peers, place);
  const std::string label = distinct.empty() ? first.folder.filename().string() : distinct;
  return peers.size() == groups.size() ? label : concat(env, ", ", label);
}

}  // namespace

std::vector<RunGroup> group_runs(std::span<const RunRecord> records) {
  std::vector<RunGroup> groups;
  for (std::size_t r = 0; r < records.size(); ++r) {
    const auto same = [&](const RunGroup& group) {
      return !records[r].settings.empty() &&
             compared_settings(records[group.runs.front()]) == compared_settings(records[r]);
    };
    const auto found = std::ranges::find_if(groups, same);
    if (found != groups.end()) {
      found->runs.push_back(r);
    } else {
      groups.push_back({"", {r}});
    }
  }
  std::map<std::string, int> uses;
  for (RunGroup& group : groups) {
    group.label = label_of(records, groups, group);
    if (const int use = ++uses[group.label]; use > 1) group.label += concat(" (", use, ")");
  }
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
