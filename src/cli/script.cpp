// script.cpp: reads the script of a trace and checks every number.
#include "src/cli/script.h"

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "src/base/files.h"
#include "src/base/json.h"
#include "src/base/suggest.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

using SortedJson = nlohmann::json;

std::string excerpt(const SortedJson& value) {
  const std::string text = dump(value);
  return text.size() > 40 ? text.substr(0, 40) + "..." : text;
}

std::int32_t choice(const std::string& place, const SortedJson& value, int choices) {
  const double number = value.is_number() ? value.get<double>() : -1.0;
  if (number != std::floor(number) || number < 0.0 || number >= choices) {
    throw UsageError(
        concat(place, ": ", excerpt(value), " must be a whole number in [0, ", choices - 1, "]"));
  }
  return static_cast<std::int32_t>(number);
}

std::int32_t component(const std::string& place, const SortedJson& value) {
  const float number = value.is_number() ? value.get<float>() : NAN;
  if (!std::isfinite(number))
    throw UsageError(concat(place, ": ", excerpt(value), " must be a finite number"));
  return std::bit_cast<std::int32_t>(number);
}

// Appends the numbers of one agent's action.
void read_action(const std::string& place, const SortedJson& action, const ActionSpace& space,
                 std::vector<std::int32_t>& into) {
  const SortedJson numbers = action.is_array() ? action : SortedJson::array({action});
  if (static_cast<int>(numbers.size()) != space.width()) {
    throw UsageError(concat(place, ": ", excerpt(action), " must be ",
                            space.width() == 1 ? "a number" : "a list of ",
                            space.width() == 1 ? "" : std::to_string(space.width()) + " numbers"));
  }
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    const std::string where = space.width() == 1 ? place : concat(place, ", number ", k);
    into.push_back(space.is_continuous() ? component(where, numbers[k])
                                         : choice(where, numbers[k], space.heads[k]));
  }
}

std::vector<std::vector<std::int32_t>> read_step(const std::string& place, SortedJson step,
                                                 const Spec& spec) {
  if (spec.num_agents() == 1 && !step.is_array()) step = SortedJson::array({step});
  if (!step.is_array() || static_cast<int>(step.size()) != spec.num_agents()) {
    throw UsageError(concat(place, ": must be a list of ", spec.num_agents(), " actions, one an agent, not ",
                            step.is_array() ? concat(step.size(), " of them") : excerpt(step)));
  }
  std::vector<std::vector<std::int32_t>> roles;
  std::size_t agent = 0;
  for (const Role& role : spec.roles) {
    roles.emplace_back();
    for (int i = 0; i < role.count; ++i, ++agent) {
      read_action(concat(place, ", agent ", agent, " (", role.name, ")"), step[agent], role.action,
                  roles.back());
    }
  }
  return roles;
}

}  // namespace

Script read_script(const std::string& path, const Spec& spec) {
  const std::optional<std::string> text = read_whole(path, kMaxInput);
  if (!text) throw UsageError(path + ": cannot read: " + std::strerror(errno));
  SortedJson json;
  try {
    json = parse_written_json(*text);
  } catch (const std::runtime_error& error) {
    throw UsageError(path + ": " + error.what());
  }
  if (!json.is_object()) throw UsageError(path + R"(: must be an object {"state": {...}, "actions": [...]})");
  for (const auto& [key, value] : json.items()) {
    if (key != "state" && key != "actions")
      throw UsageError(path + ": unknown key \"" + key + "\"" + suggestion(key, {"state", "actions"}));
  }
  Script script;
  if (json.contains("state")) script.state = json["state"].dump();
  const SortedJson actions = json.value("actions", SortedJson());
  if (!actions.is_array()) throw UsageError(path + ": \"actions\" must be a list of steps");
  for (std::size_t t = 0; t < actions.size(); ++t) {
    script.actions.push_back(read_step(concat(path, ": step ", t + 1), actions[t], spec));
  }
  return script;
}

}  // namespace wd::cli
