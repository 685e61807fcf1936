// print.cpp: prints a configuration as YAML that loads back to the same configuration.
#include <algorithm>

#include "src/config/layers.h"
#include "src/config/setting_table.h"
#include "wd/config.h"

namespace wd {
namespace {

constexpr std::size_t kCommentColumn = 44;

class Printer {
 public:
  Printer(const std::map<std::string, std::string>& origins, bool with_origins)
      : origins_(origins), with_origins_(with_origins) {}

  const std::string& text() const { return text_; }
  // Every field, with its path as the name.
  const std::vector<FieldInfo>& fields() const { return fields_; }

  void heading(int indent, const std::string& name) {
    text_ += std::string(static_cast<std::size_t>(indent), ' ') + name + ":\n";
  }

  void value(int indent, const std::string& path, FieldInfo field) {
    if (!is_left_out(path, field)) write(indent, path, field);
    field.name = path;
    fields_.push_back(std::move(field));
  }

  void section(int indent, const std::string& path, const Describe& describe) {
    for (const FieldInfo& field : list_fields(describe)) value(indent, path + "." + field.name, field);
  }

 private:
  // What few configurations set, and none had before it existed: its default is not written.
  bool is_left_out(const std::string& path, const FieldInfo& field) const {
    const bool opponents = path.starts_with("opponents.") && !with_origins_;
    return (opponents || path.ends_with(".model.critic_reads")) && field.value == "[]";
  }

  void write(int indent, const std::string& path, const FieldInfo& field) {
    std::string line = std::string(static_cast<std::size_t>(indent), ' ') + field.name + ": " + field.value;
    if (with_origins_) {
      line.resize(std::max(line.size() + 2, kCommentColumn), ' ');
      const auto origin = origins_.find(path);
      line += "# " + (origin == origins_.end() ? "default" : origin->second);
    }
    text_ += line + "\n";
  }

  const std::map<std::string, std::string>& origins_;
  bool with_origins_;
  std::string text_;
  std::vector<FieldInfo> fields_;
};

void print_policy(Printer& out, PolicySettings& policy) {
  const std::string path = "policy." + policy.name;
  out.heading(2, policy.name);
  out.section(4, path, config::describe_of(policy));
  out.heading(4, "model");
  out.section(6, path + ".model", config::describe_of(policy.model));
}

void print_opponents(Printer& out, Config& config, bool with_origins) {
  const auto has = [](const PolicySettings& policy) { return !policy.opponents.empty(); };
  if (with_origins || std::ranges::any_of(config.policies, has)) out.heading(0, "opponents");
  for (PolicySettings& policy : config.policies)
    out.section(2, "opponents",
                [&](Fields& field) { field(policy.name.c_str(), policy.opponents, kOpponentsHelp); });
}

void print_members(Printer& out, const Config& config) {
  if (!config.members.empty()) out.heading(0, "members");
  for (const auto& [path, values] : config.members)
    out.value(2, "members." + path, {path, "list", concat('[', join(values), ']'), "", "by member"});
}

// Marks values that are a default of the policy's algorithm.
void name_defaults(Config& config) {
  for (const PolicySettings& policy : config.policies) {
    AlgorithmChoice settings = policy.algorithm;
    for (const FieldInfo& field : list_fields(config::describe_of(*settings)))
      config.origins.try_emplace("policy." + policy.name + "." + field.name,
                                 std::string("default of ") + settings->name());
  }
}

void print_all(Printer& out, Config& config, const Describe& environment, bool with_origins) {
  out.value(0, "name", {"name", "text", '"' + config.name + '"', "", "environment"});
  if (!config.source.empty())
    out.value(0, "source",
              {"source", "text", '"' + config.source + '"', "", "hash of the environment's file"});
  for (const auto& [name, describe] : config::sections_of(config)) {
    out.heading(0, name);
    out.section(2, name, describe);
    if (name == "env") out.section(2, name, environment);
    if (name != "trainer") continue;
    out.heading(0, "policy");
    for (PolicySettings& policy : config.policies) print_policy(out, policy);
    print_opponents(out, config, with_origins);
    print_members(out, config);
  }
}

}  // namespace

std::string print_config(Config config, const Describe& environment, bool with_origins) {
  if (with_origins) name_defaults(config);
  Printer out(config.origins, with_origins);
  print_all(out, config, environment, with_origins);
  return out.text();
}

std::vector<FieldInfo> list_settings(Config config, const Describe& environment) {
  Printer out(config.origins, false);
  print_all(out, config, environment, false);
  return out.fields();
}

std::vector<std::pair<std::string, std::string>> config_values(Config config, const Describe& environment) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const FieldInfo& field : list_settings(std::move(config), environment))
    values.emplace_back(field.name, field.value);
  return values;
}

std::uint64_t config_hash(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  }
  return hash;
}

}  // namespace wd
