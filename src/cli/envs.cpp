// envs.cpp: `wdtrain envs [NAME]`: lists the environments or describes one.
#include <nlohmann/json.hpp>

#include "src/base/json.h"
#include "src/cli/output.h"
#include "src/cli/setup.h"
#include "src/report/format.h"

namespace wd::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTypes[] = {"float", "double", "int", "unsigned"};  // in the order of FieldType

std::string end_of(const Spec& spec) {
  return spec.at_time_limit == AtTimeLimit::kTruncates ? "truncates" : "terminates";
}

std::string head_name(const ActionSpace& space, std::size_t k) {
  return k < space.names.size() ? space.names[k] : "action " + std::to_string(k);
}

std::string describe_action(const ActionSpace& space) {
  std::vector<std::string> words;
  for (std::size_t k = 0; k < static_cast<std::size_t>(space.width()); ++k) {
    words.push_back(space.is_continuous() ? concat(head_name(space, k), " in [", space.bounds[k].low, ", ",
                                                   space.bounds[k].high, "]")
                                          : concat(head_name(space, k), " 0..", space.heads[k] - 1));
  }
  return join(words);
}

const char* per(const StreamSpec& stream) { return stream.of == StreamSpec::kAgent ? "agent" : "replica"; }
std::string shape_text(const std::vector<int>& shape) { return shape.empty() ? "1" : join(shape, " x "); }
const char* type(const StreamSpec& stream) { return stream.type == StreamSpec::kUint8 ? "uint8" : "float32"; }

Json role_json(const Role& role, int first_agent) {
  Json observation = Json::array(), action;
  int begin = 0;
  for (const ObservationPart& part : role.observation) {
    observation.push_back({{"name", part.name}, {"begin", begin}, {"end", begin + part.size}});
    begin += part.size;
  }
  if (role.action.is_continuous()) {
    Json low = Json::array(), high = Json::array();
    for (const Bounds& bounds : role.action.bounds) {
      low.push_back(bounds.low);
      high.push_back(bounds.high);
    }
    action = {
        {"continuous", role.action.components()}, {"low", low}, {"high", high}, {"names", role.action.names}};
  } else {
    action = {{"heads", role.action.heads}, {"names", role.action.names}};
  }
  return {{"name", role.name},
          {"first_agent", first_agent},
          {"agents", role.count},
          {"observation_size", begin},
          {"observation", observation},
          {"action", action},
          {"action_mask", role.action_mask},
          {"paid_after_leaving", role.paid_after_leaving}};
}

// Converts a parameter's default or value. The text of numbers and bools is also valid JSON.
Json value_json(const std::string& text) {
  Json value = parse_json<Json>(text);
  return value.is_discarded() ? Json(text) : value;
}

struct Parameter {
  FieldInfo info;
  std::string fallback, origin;
};

std::vector<Parameter> parameters_of(const Experiment& setup) {
  const std::unique_ptr<Environment> fresh = make_environment(setup.config.name);
  const auto defaults = list_fields([&](Fields& fields) { fresh->describe(fields); });
  std::vector<Parameter> parameters;
  for (const FieldInfo& info : list_fields(setup.describe())) {
    const auto origin = setup.config.origins.find("env." + info.name);
    parameters.push_back({info, defaults[parameters.size()].value,
                          origin == setup.config.origins.end() ? "" : origin->second});
  }
  return parameters;
}

Json description_json(const Experiment& setup) {
  const Spec spec = setup.environment->spec();
  Json json = {{"name", setup.environment->name()},
               {"agents", spec.num_agents()},
               {"time_limit", spec.time_limit},
               {"at_time_limit", end_of(spec)}};
  int first = 0;
  for (const Role& role : spec.roles) {
    json["roles"].push_back(role_json(role, first));
    first += role.count;
  }
  json["table"] = nullptr;
  if (spec.table.features > 0) {
    json["table"] = {
        {"features", spec.table.features}, {"relative", spec.table.relative}, {"own", spec.table.own}};
  }
  json["zero_sum_turns"] = nullptr;
  if (spec.zero_sum_turns.are_declared()) json["zero_sum_turns"] = {{"wait", spec.zero_sum_turns.wait}};
  for (const char* list : {"parameters", "state", "statistics", "streams"}) json[list] = Json::array();
  for (const auto& [info, fallback, origin] : parameters_of(setup)) {
    json["parameters"].push_back({{"name", info.name},
                                  {"type", info.type},
                                  {"value", value_json(info.value)},
                                  {"default", value_json(fallback)},
                                  {"from", origin.empty() ? "default" : origin},
                                  {"range", info.range},
                                  {"help", info.help}});
  }
  for (const Statistic& statistic : spec.statistics) {
    json["statistics"].push_back(
        {{"field", statistic.field}, {"role", statistic.role}, {"help", statistic.help}});
  }
  for (const StreamSpec& stream : spec.streams)
    json["streams"].push_back(
        {{"name", stream.name}, {"per", per(stream)}, {"type", type(stream)}, {"shape", stream.shape}});
  for (const StateField& field : setup.environment->layout().fields) {
    if (field.scratch) continue;
    json["state"].push_back({{"name", field.name},
                             {"type", kTypes[static_cast<int>(field.type)]},
                             {"count", field.count},
                             {"per", field.per_agent ? "agent"
                                     : field.array   ? "array"
                                                     : "replica"}});
  }
  return json;
}

std::string role_text(const Role& role, int first) {
  std::vector<std::vector<std::string>> parts;
  int begin = 0;
  for (const ObservationPart& part : role.observation) {
    const int last = begin + part.size - 1;
    parts.push_back(
        {part.size == 1 ? concat("[", begin, "]") : concat("[", begin, "..", last, "]"), part.name});
    begin += part.size;
  }
  const std::string agents = role.count == 1
                                 ? concat("agent ", first)
                                 : concat(role.count, " agents, ", first, "..", first + role.count - 1);
  return concat("\nrole ", role.name, ": ", agents, "\n  actions: ", describe_action(role.action),
                role.action_mask ? ", some of them masked" : "",
                role.paid_after_leaving ? "\n  paid after leaving the game, until the episode ends" : "",
                "\n  observation: ", report::counted(begin, "number"), "\n", table(parts, 4));
}

std::string description(const Experiment& setup) {
  const Spec spec = setup.environment->spec();
  std::string text =
      concat(setup.environment->name(), ": ", report::counted(spec.num_agents(), "agent"), ", an episode ",
             end_of(spec), " after ", report::counted(spec.time_limit, "step"), "\n");
  if (spec.zero_sum_turns.are_declared())
    text += concat("two agents move in turn, one wins what the other loses; choice ",
                   spec.zero_sum_turns.wait, " is to wait\n");
  int first = 0;
  for (const Role& role : spec.roles) {
    text += role_text(role, first);
    first += role.count;
  }
  if (spec.table.features > 0) {
    text += concat("\nall rows follow from one table of ", spec.table.columns(),
                   " numbers an agent: --set trainer.observations=table trains faster\n");
  }
  std::vector<std::vector<std::string>> rows = {{"NAME", "VALUE", "DEFAULT", "TYPE", "RANGE", "MEANING"}};
  for (const auto& [info, fallback, origin] : parameters_of(setup)) {
    rows.push_back({info.name, info.value, fallback, info.type, info.range, info.help});
  }
  text += "\nparameters (--set env.NAME=VALUE)\n" + table(rows, 2);
  rows = {{"NAME", "TYPE", "PER"}};
  for (const StateField& field : setup.environment->layout().fields) {
    if (field.scratch) continue;
    rows.push_back({field.name, kTypes[static_cast<int>(field.type)],
                    field.per_agent ? "agent"
                    : field.array   ? concat("array of ", field.count)
                                    : "replica"});
  }
  text += "\nstate (fields of a trace)\n" + table(rows, 2);
  rows = {{"NAME", "TYPE", "SHAPE", "PER"}};
  for (const StreamSpec& stream : spec.streams)
    rows.push_back({stream.name, type(stream), shape_text(stream.shape), per(stream)});
  if (rows.size() > 1) text += "\nstreams (model.reads, recordings)\n" + table(rows, 2);
  rows.clear();
  for (const Statistic& statistic : spec.statistics) {
    rows.push_back(
        {statistic.field, statistic.role.empty() ? "" : "mean over " + statistic.role, statistic.help});
  }
  return rows.empty() ? text : text + "\nstatistics (at the end of an episode)\n" + table(rows, 2);
}

std::vector<std::string> summary(const std::string& name, const Spec& spec) {
  std::vector<std::string> roles, actions;
  for (const Role& role : spec.roles) roles.push_back(concat(role.count, " ", role.name));
  return {name, join(roles), concat(end_of(spec), " after ", spec.time_limit),
          describe_action(spec.roles.front().action)};
}

void list(bool json, const ConfigSources& sources) {
  Json all = Json::array();
  std::vector<std::vector<std::string>> rows = {{"NAME", "AGENTS", "EPISODE", "ACTIONS"}};
  for (const EnvironmentRow& row : detail::environment_table()) {
    ConfigSources one = sources;
    one.env = row.name;
    const Experiment setup = load_environment(one);
    if (json) all.push_back(description_json(setup));
    rows.push_back(summary(row.name, setup.environment->spec()));
  }
  print(json ? all.dump(2) + "\n" : table(rows, 0));
}

}  // namespace

int envs(const CommandLine& line) {
  Arguments arguments(line, "envs",
                      "List the environments, or describe one: roles, spaces, observations, parameters.");
  std::string name, file;
  std::vector<std::string> set;
  bool json = false;
  arguments.word("NAME", name, "environment to describe");
  arguments.option("-c,--config", file, "FILE", "YAML file that overrides configs/NAME.yaml");
  arguments.repeatable("-s,--set", set, "env.KEY=VALUE", "a parameter; may be repeated");
  arguments.flag("--json", json, "as JSON");
  if (!arguments.parse()) return 0;
  ConfigSources sources{name, file, {}, config_folders()};
  for (const std::string& one : set) sources.overrides.push_back(parse_override(one));
  if (name.empty() && file.empty()) {
    list(json, sources);
    return 0;
  }
  const Experiment setup = load_environment(sources);
  print(json ? description_json(setup).dump(2) + "\n" : description(setup));
  return 0;
}

}  // namespace wd::cli
