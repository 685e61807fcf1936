// setting_table.cpp: gathers the settings of all sections, algorithms and networks.
#include "src/config/setting_table.h"

#include <algorithm>
#include <functional>

#include "src/config/layers.h"
#include "wd/detail/networks.h"

namespace wd {
namespace {

using config::fields_of;

template <typename Settings>
SettingSection section_of(const std::string& path, const Settings& settings) {
  SettingSection section{path, {}};
  for (FieldInfo& field : fields_of(settings)) section.rows.push_back({std::move(field), {}});
  return section;
}

std::vector<FieldInfo> fields_by(const std::string& algorithm) {
  PolicySettings policy;
  policy.algorithm = AlgorithmChoice::named(algorithm);
  return fields_of(policy);
}

// First the settings of every policy, then those of algorithms. Settings of one name and several meanings
// have a row for each.
SettingSection policy_section() {
  std::vector<SettingRow> rows;
  std::vector<std::string> names = algorithm_names();
  std::ranges::stable_sort(names, std::greater(),
                           [](const std::string& name) { return fields_by(name).size(); });
  for (const std::string& name : names) {
    for (const FieldInfo& field : fields_by(name)) {
      auto row = std::ranges::find_if(rows, [&](const SettingRow& r) {
        return r.field.name == field.name && r.field.help == field.help && r.field.range == field.range;
      });
      if (row == rows.end()) {
        const auto named = std::find_if(rows.rbegin(), rows.rend(),
                                        [&](const SettingRow& r) { return r.field.name == field.name; });
        row = rows.insert(named == rows.rend() ? rows.end() : named.base(), SettingRow{field, {}});
      }
      row->of_algorithms.emplace_back(name, field.value);
    }
  }
  for (SettingRow& row : rows) {
    const bool same = std::ranges::all_of(row.of_algorithms,
                                          [&](const auto& one) { return one.second == row.field.value; });
    if (row.field.name == "algorithm") row.field.value = PolicySettings{}.algorithm->name();
    if (row.field.name == "algorithm" || (same && row.of_algorithms.size() == names.size()))
      row.of_algorithms.clear();
  }
  return {"policy.NAME", std::move(rows)};
}

struct Opponents {
  std::vector<ListedPlayer> of_policy;
  void describe(Fields& field) { field("NAME", of_policy, kOpponentsHelp); }
};

constexpr SearchRange kSearched[] = {
    {"lr", 1e-5, 1e-2, "log"},
    {"critic_lr", 1e-5, 1e-2, "log"},
    {"temperature_lr", 1e-5, 1e-2, "log"},
    {"gamma", 0.9, 0.9999, "logit"},
    {"gae_lambda", 0.8, 0.995, "logit"},
    {"lambda", 0.5, 0.995, "logit"},
    {"tau", 1e-3, 1, "log"},
    {"clip_param", 0.05, 0.4, "linear"},
    {"entropy_coeff", 1e-5, 0.1, "log"},
    {"vf_loss_coeff", 0.1, 2, "log"},
    {"max_grad_norm", 0.1, 10, "log"},
    {"num_epochs", 1, 20, "log"},
    {"num_minibatches", 1, 64, "powers_of_two"},
    {"num_envs", 16, 1024, "powers_of_two"},
    {"train_batch_size", 1024, 65536, "powers_of_two"},
    {"batch_size", 32, 1024, "powers_of_two"},
    {"noise", 0.02, 0.5, "log"},
};

}  // namespace

const SearchRange* search_range(const FieldInfo& field) {
  const std::string key = field.name.substr(field.name.rfind('.') + 1);
  const auto* const found = std::ranges::find(kSearched, key, &SearchRange::key);
  return field.name.starts_with("env.") || found == std::ranges::end(kSearched) ? nullptr : found;
}

std::vector<SettingSection> setting_table() {
  return {section_of("env", EnvSettings{}),
          section_of("trainer", TrainerSettings{}),
          policy_section(),
          section_of("policy.NAME.model", ModelSettings{}),
          section_of("opponents", Opponents{}),
          section_of("saving", SavingSettings{}),
          section_of("eval", EvalSettings{}),
          section_of("play", PlaySettings{}),
          section_of("autoscale", AutoscaleSettings{})};
}

std::vector<FieldInfo> general_settings() {
  std::vector<FieldInfo> fields;
  const auto add = [&fields](FieldInfo field, const std::string& section) {
    field.name = section + "." + field.name;
    const auto same = [&](const FieldInfo& one) { return one.name == field.name; };
    if (std::ranges::none_of(fields, same)) fields.push_back(std::move(field));
  };
  for (const SettingSection& section : setting_table()) {
    for (const SettingRow& row : section.rows) add(row.field, section.path);
    if (section.path != "policy.NAME.model") continue;
    for (const std::string& name : network_names()) {
      ModelSettings model;
      model.set_type(name);
      for (const FieldInfo& field : fields_of(model)) add(field, section.path);
    }
  }
  return fields;
}

}  // namespace wd
