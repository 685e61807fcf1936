// spec_fault.cpp: the faults that a specification may have, by itself and against the state.
#include "src/replicas/spec_fault.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>

#include "src/base/join.h"
#include "src/base/name.h"
#include "wd/detail/networks.h"
#include "wd/error.h"
#include "wd/outside.h"
#include "wd/trajectory.h"

namespace wd {
namespace {

// Whether the observation has these numbers of `count` things.
std::string column_fault(const Role& role, const EntityColumn& column, int count) {
  const auto named = [&](const ObservationPart& part) { return part.name == column.part; };
  const auto parts = std::ranges::count_if(role.observation, named);
  if (parts != 1)
    return concat("the observation has ", parts == 0 ? "no part" : "several parts", " '", column.part, "'");
  const int size = std::ranges::find_if(role.observation, named)->size;
  const std::int64_t last = column.first + std::int64_t{column.step} * (count - 1);
  if (column.first < 0 || column.step < 1 || (count > 0 && last >= size))
    return concat("part '", column.part, "' has ", size, " entries, and not ", count, " from ", column.first,
                  " on, ", column.step, " apart");
  return "";
}

std::string list_fault(const Role& role, const EntityList& list) {
  if (list.count < 0) return concat("has ", list.count, " things");
  if (list.kinds < 1 || list.kinds > kMaxEntityKinds)
    return concat("has ", list.kinds, " kinds instead of 1 to ", kMaxEntityKinds);
  if (list.kind.is_set() != (list.kinds > 1))
    return list.kinds > 1 ? concat("has ", list.kinds, " kinds and no column `kind`")
                          : "has a column `kind` and one kind";
  if (list.features.size() > kMaxEntityFeatures)
    return concat("has ", list.features.size(), " features, more than ", kMaxEntityFeatures);
  std::vector<EntityColumn> columns = {list.x, list.y};
  for (const EntityColumn& column : {list.heading, list.kind, list.presence})
    if (column.is_set()) columns.push_back(column);
  columns.insert(columns.end(), list.features.begin(), list.features.end());
  for (const EntityColumn& column : columns)
    if (std::string fault = column_fault(role, column, list.count); !fault.empty()) return fault;
  return "";
}

std::string entities_fault(const Role& role) {
  const Entities& entities = role.entities;
  if (entities.lists.size() > kMaxEntityLists)
    return concat("role ", role.name, " observes ", entities.lists.size(), " lists of things, more than ",
                  kMaxEntityLists);
  for (const EntityList& list : entities.lists)
    if (const std::string fault = list_fault(role, list); !fault.empty())
      return concat("role ", role.name, ": list of things '", list.name, "': ", fault);
  if (entities.heading_cos.is_set() != entities.heading_sin.is_set())
    return concat("role ", role.name, ": of heading_cos and heading_sin there is one alone");
  for (const EntityColumn& column : {entities.heading_cos, entities.heading_sin}) {
    if (!column.is_set()) continue;
    if (const std::string fault = column_fault(role, column, 1); !fault.empty())
      return concat("role ", role.name, ": its heading: ", fault);
  }
  return "";
}

std::string choices_fault(const Role& role) {
  const ChoiceFeatures& features = role.choice_features;
  if (features == ChoiceFeatures{}) return "";
  const std::string of = concat("role ", role.name, ": choice_features");
  if (features.size < 1) return concat(of, ".size is ", features.size);
  if (role.action.is_continuous()) return concat(of, " of an action without choices");
  if (features.are_fixed() == (features.first >= 0))
    return concat(of, " need either `fixed` or `first`, and have ",
                  features.are_fixed() ? "both" : "neither");
  const std::int64_t numbers = std::int64_t{role.action.choices()} * features.size;
  const auto given = static_cast<std::int64_t>(features.fixed.size());
  if (features.are_fixed() && given != numbers)
    return concat(of, ".fixed has ", given, " numbers instead of ", role.action.choices(), " choices times ",
                  features.size);
  if (!std::ranges::all_of(features.fixed, [](float x) { return std::isfinite(x); }))
    return concat(of, ".fixed has a number that is not finite");
  if (!features.are_fixed() && features.first + numbers > role.observation_size())
    return concat(of, ": the observation has ", role.observation_size(), " entries, and not ", numbers,
                  " from ", features.first, " on");
  return "";
}

std::string role_fault(const Role& role) {
  if (!is_name(role.name))
    return concat("role '", role.name, "': the name must be made of A-Z a-z 0-9 . _ -");
  if (role.count < 1) return concat("role ", role.name, " has ", role.count, " agents");
  if (role.action.width() < 1) return concat("role ", role.name, " has no action");
  if (!role.action.heads.empty() && !role.action.bounds.empty())
    return concat("role ", role.name,
                  " has choices (heads) and components (bounds) at once, which is not supported: ",
                  "take one kind, with choices for steps of a component, or components for choices");
  for (const int n : role.action.heads) {
    if (n < 1) return concat("role ", role.name, " has an action with ", n, " choices");
  }
  for (const Bounds& bounds : role.action.bounds) {
    if (!(bounds.low < bounds.high))
      return concat(
          "role ", role.name, ": action bounds [", bounds.low, ", ", bounds.high,
          "]: the low one must be below the high one; leave out a component that is always the same");
  }
  if (role.action_mask && role.action.is_continuous())
    return concat("role ", role.name, ": only categorical actions have masks");
  if (!role.action.names.empty() && static_cast<int>(role.action.names.size()) != role.action.width()) {
    return concat("role ", role.name, " has ", role.action.width(), " actions and ", role.action.names.size(),
                  " names for them");
  }
  for (const std::string& name : role.action.names) {
    if (!is_name(name))
      return concat("role ", role.name, ": action '", name, "': the name must be made of A-Z a-z 0-9 . _ -");
  }
  for (const ObservationPart& part : role.observation) {
    if (part.size < 0)
      return concat("role ", role.name, ": observation part '", part.name, "' has ", part.size, " entries");
  }
  if (role.observation_size() < 1) return concat("role ", role.name, " observes nothing");
  const std::string fault = choices_fault(role);
  return fault.empty() ? entities_fault(role) : fault;
}

std::string streams_fault(const Spec& spec) {
  constexpr double kMaxNumbers = 1 << 24;  // of a row
  std::set<std::string> names;
  if (spec.streams.size() > kMaxStreams)
    return concat(spec.streams.size(), " streams, and at most ", kMaxStreams, " are possible");
  for (const StreamSpec& stream : spec.streams) {
    const std::string who = concat("stream '", stream.name, "'");
    if (!is_name(stream.name)) return concat(who, ": the name must be made of A-Z a-z 0-9 . _ -");
    if (!names.insert(stream.name).second) return concat("two streams are called ", stream.name);
    for (const BufferField& field : buffer_fields())
      if (field.stream < 0 && field.recorded && field.name == stream.name)
        return concat(who, ": recordings have a buffer of this name: choose another");
    // The first is what networks read (model.reads); the others are names in files of weights and memories.
    if (contains({InputPart::kAgentId, "norm", "flags", "priority"}, stream.name))
      return concat(who, ": the program uses this name: choose another");
    double numbers = 1.0;
    for (const int n : stream.shape) {
      if (n < 1) return concat(who, ": its shape has a ", n);
      numbers *= n;
    }
    if (numbers > kMaxNumbers) return concat(who, ": a row has more than 2^24 numbers");
  }
  return "";
}

std::string table_fault(const Spec& spec) {
  const ObservationTable& table = spec.table;
  if (table.features == 0) return "";
  if (table.relative < 0 || table.relative > table.features || table.own < 0 || table.features < 0)
    return concat("a table of ", table.features, " features, ", table.relative, " of them relative, and ",
                  table.own, " own entries");
  if (spec.num_agents() < 2) return "a table of one agent: nobody sees another";
  for (const Role& role : spec.roles) {
    const int size = table.row_size(spec.num_agents());
    if (role.observation_size() != size)
      return concat("role ", role.name, " observes ", role.observation_size(),
                    " numbers, and rows of the table have ", size);
  }
  return "";
}

std::string turns_fault(const Spec& spec) {
  if (!spec.zero_sum_turns.are_declared()) return "";
  if (spec.num_agents() != 2)
    return concat("zero_sum_turns need exactly two agents, and there are ", spec.num_agents());
  for (const Role& role : spec.roles) {
    const std::string who = concat("zero_sum_turns: role ", role.name);
    if (role.action.is_continuous()) return concat(who, " has continuous actions, and waiting is a choice");
    if (!role.action_mask) return concat(who, " has no action mask, which tells whose turn it is");
    if (spec.zero_sum_turns.wait < 0 || spec.zero_sum_turns.wait >= role.action.heads.front())
      return concat(who, ": wait = ", spec.zero_sum_turns.wait, " is none of the ", role.action.heads.front(),
                    " choices of its first head");
  }
  return "";
}

std::string statistic_fault(const Statistic& statistic, const StateLayout& layout,
                            const std::set<std::string>& roles) {
  for (const StateField& field : layout.fields) {
    if (field.name != statistic.field) continue;
    if (!is_name(field.name))
      return concat("statistic '", field.name, "': the name must be made of A-Z a-z 0-9 . _ -");
    if (field.scratch) return concat("statistic '", field.name, "' is working memory");
    if (field.array && !statistic.role.empty())
      return concat("statistic '", field.name, "' is an array and names a role");
    if (field.count == 0) return concat("statistic '", field.name, "' is an array without values");
    if (field.per_agent == statistic.role.empty()) {
      return concat("statistic '", field.name, "' is per ",
                    field.per_agent ? "agent and names no role" : "replica and names a role");
    }
    return statistic.role.empty() || roles.contains(statistic.role)
               ? ""
               : concat("statistic '", field.name, "': no role '", statistic.role, "'");
  }
  return concat("statistic '", statistic.field, "' is not a state field");
}

// Whether every object of the shape has a value in each of its fields.
std::string shape_fault(const drawing::Shape& shape, const StateLayout& layout) {
  const StateField *agents = nullptr, *array = nullptr;
  for (const drawing::Quantity* quantity : shape.quantities()) {
    const std::string& name = quantity->field;
    if (name.empty()) continue;
    const auto field = std::ranges::find(layout.fields, name, &StateField::name);
    if (field == layout.fields.end())
      return concat("the drawing uses '", name, "', which is not a state field");
    if (field->scratch) return concat("the drawing uses '", name, "', which is working memory");
    if ((field->per_agent || field->array) && shape.objects > field->count)
      return concat("the drawing shows ", shape.objects, " objects of '", name, "', which has ", field->count,
                    " values");
    if (field->array && array != nullptr && shape.objects < 0 && field->count != array->count)
      return concat("a shape uses the arrays '", array->name, "' and '", name, "', which have ", array->count,
                    " and ", field->count, " values");
    if (field->per_agent) agents = &*field;
    if (field->array) array = &*field;
  }
  if (array != nullptr && agents != nullptr)
    return concat("a shape uses '", agents->name, "', which is per agent, and the array '", array->name, "'");
  if (array != nullptr && !shape.role.empty())
    return concat("a shape of role '", shape.role, "' uses the array '", array->name,
                  "', whose objects are not agents");
  return "";
}

// Whether cells show an array of whole rows, and each color is one.
std::string cells_fault(const drawing::Shape& shape, const StateLayout& layout,
                        const std::set<std::string>& roles) {
  if (shape.kind != drawing::Shape::Kind::kCells) return "";
  const std::string& name = shape.x.field;
  const auto field = std::ranges::find(layout.fields, name, &StateField::name);
  if (field == layout.fields.end() || !field->array)
    return concat("the drawing shows cells of '", name, "', which is not an array (wd::Array)");
  if (shape.columns < 1 || field->count % shape.columns != 0)
    return concat("the drawing shows cells of '", name, "' in ", shape.columns,
                  " columns, which do not divide ", field->count, " values");
  for (const std::string& color : shape.colors) {
    const bool number = color.size() == 7 && color[0] == '#' &&
                        color.find_first_not_of("0123456789abcdefABCDEF", 1) == std::string::npos;
    if (!color.empty() && color != "gray" && !roles.contains(color) && !number)
      return concat("the drawing shows cells of '", name, "' in the color '", color,
                    "', which is no role, gray or #rrggbb");
  }
  return "";
}

std::string drawing_fault(const Spec& spec, const StateLayout& layout, const std::set<std::string>& roles) {
  const Drawing& drawing = spec.drawing;
  if (drawing.shapes.empty()) return "";
  if (!(drawing.left < drawing.right) || !(drawing.bottom < drawing.top))
    return concat("the drawing shows x in [", drawing.left, ", ", drawing.right, "] and y in [",
                  drawing.bottom, ", ", drawing.top, "]");
  for (const drawing::Shape& shape : drawing.shapes) {
    if (!shape.role.empty() && !roles.contains(shape.role))
      return concat("a shape is of role '", shape.role, "', which does not exist");
    if (std::string fault = shape_fault(shape, layout); !fault.empty()) return fault;
    if (std::string fault = cells_fault(shape, layout, roles); !fault.empty()) return fault;
  }
  return "";
}

}  // namespace

std::string spec_fault(const Spec& spec, const StateLayout& layout) {
  if (spec.time_limit < 1 || spec.time_limit >= kMaxTimeLimit)
    return concat("time limit ", spec.time_limit, " is not in [1, 2^24)");
  std::set<std::string> roles, fields;
  for (const Role& role : spec.roles) {
    if (std::string fault = role_fault(role); !fault.empty()) return fault;
    if (!roles.insert(role.name).second) return concat("two roles are called ", role.name);
  }
  if (roles.empty()) return "there is no role";
  if (roles.size() > kMaxRoles) return concat("more than ", kMaxRoles, " roles");
  if (std::string fault = table_fault(spec); !fault.empty()) return fault;
  if (std::string fault = streams_fault(spec); !fault.empty()) return fault;
  if (std::string fault = turns_fault(spec); !fault.empty()) return fault;
  for (const StateField& field : layout.fields) {
    if (!fields.insert(field.name).second) return concat("two state fields are called ", field.name);
  }
  std::set<std::string> statistics;
  for (const Statistic& statistic : spec.statistics) {
    if (std::string fault = statistic_fault(statistic, layout, roles); !fault.empty()) return fault;
    if (!statistics.insert(statistic.field).second)
      return concat("two statistics are of field ", statistic.field);
  }
  if (statistics.size() > kMaxStatistics) return concat("more than ", kMaxStatistics, " statistics");
  return drawing_fault(spec, layout, roles);
}

std::string device_fault(const Environment& environment, Device device) {
  if (!device.is_cuda() || environment.cuda() != nullptr ||
      dynamic_cast<const OutsideEnvironment*>(&environment) != nullptr)
    return "";
  return concat("environment ", environment.name(), " was built without CUDA");
}

}  // namespace wd
