// rollout.cpp: one description of a rollout, with its numbers as lists or packed.
#include "src/play/rollout.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "src/base/json.h"
#include "src/base/name.h"
#include "src/play/packed.h"
#include "src/play/viewer.h"
#include "wd/error.h"

namespace wd {

namespace {

using Json = nlohmann::ordered_json;

// How the numbers of a series are written; as JSON, those that are not finite are null. `agents`: how many
// have probabilities in it, or 0.
using Numbers = std::function<Json(const Series& series, int agents)>;

Json lists(const Series& series, int) {
  Json moments = Json::array();
  auto row = series.values.begin();
  for (std::size_t m = 0; m < series.moments(); ++m, row += series.width)
    moments.push_back(std::vector<double>(row, row + series.width));
  return moments;
}

Json quantity_json(const drawing::Quantity& quantity) {
  if (quantity.field.empty()) return quantity.offset;
  return {{"field", quantity.field}, {"scale", quantity.scale}, {"offset", quantity.offset}};
}

Json drawing_json(const Drawing& drawing) {
  static constexpr const char* kKinds[] = {"circle", "rectangle", "line", "cells"};  // as Shape::Kind
  Json shapes = Json::array();
  for (const drawing::Shape& shape : drawing.shapes) {
    shapes.push_back({{"kind", kKinds[static_cast<std::size_t>(shape.kind)]},
                      {"x", quantity_json(shape.x)},
                      {"y", quantity_json(shape.y)},
                      {"width", quantity_json(shape.width)},
                      {"height", quantity_json(shape.height)},
                      {"angle", quantity_json(shape.angle)},
                      {"faces", shape.faces},
                      {"role", shape.role},
                      {"objects", shape.objects}});
    if (shape.kind != drawing::Shape::Kind::kCells) continue;
    shapes.back().update({{"columns", shape.columns}, {"colors", shape.colors}, {"discs", shape.discs}});
  }
  return {{"left", drawing.left}, {"bottom", drawing.bottom}, {"right", drawing.right},
          {"top", drawing.top},   {"grid", drawing.grid},     {"shapes", shapes}};
}

Json role_json(const Role& role) {
  Json actions = Json::array();
  for (std::size_t k = 0; k < static_cast<std::size_t>(role.action.width()); ++k) {
    Json action = {{"name", role.action.name(k)}};
    if (!role.action.is_continuous()) {
      action["choices"] = role.action.heads[k];
    } else if (role.action.bounds[k].are_finite()) {
      action["low"] = role.action.bounds[k].low;
      action["high"] = role.action.bounds[k].high;
    }
    actions.push_back(std::move(action));
  }
  return {{"name", role.name}, {"count", role.count}, {"actions", actions}};
}

Json episode_json(const Rollout& rollout, const Rollout::Episode& played, const Numbers& numbers) {
  const EpisodeRecord& episode = played.record;
  Json players = Json::object(), state = Json::object(), roles = Json::object();
  const std::vector<StateField> fields = recorded_fields(rollout.layout);
  for (std::size_t f = 0; f < fields.size(); ++f) {
    Json& json = state[fields[f].name] = numbers(episode.state[f], 0);
    // As lists, an array without values is an empty list in every frame.
    if (json.is_array())
      json.get_ref<Json::array_t&>().resize(static_cast<std::size_t>(episode.steps) + 1, Json::array());
  }
  for (std::size_t r = 0; r < episode.roles.size(); ++r) {
    const RoleRecord& role = episode.roles[r];
    const std::string& name = rollout.spec.roles[r].name;
    players[name] = played.players[r];
    Json& json = roles[name] = {{"in_game", numbers(role.in_game, 0)},
                                {"reward", numbers(role.reward, 0)},
                                {"action", numbers(role.action, 0)}};
    if (role.value.width > 0) json["value"] = numbers(role.value, 0);
    if (role.probability.width > 0)
      json["probability"] = numbers(role.probability, rollout.spec.roles[r].count);
    if (role.mean.width > 0) {
      json["mean"] = numbers(role.mean, 0);
      json["below"] = numbers(role.below, 0);
      json["above"] = numbers(role.above, 0);
    }
  }
  return {{"steps", episode.steps},
          {"whole", episode.whole},
          {"players", players},
          {"state", state},
          {"roles", roles}};
}

Json description(const Rollout& rollout, const Numbers& numbers) {
  Json roles = Json::array(), fields = Json::array(), episodes = Json::array();
  for (const Role& role : rollout.spec.roles) roles.push_back(role_json(role));
  for (const StateField& field : recorded_fields(rollout.layout))
    fields.push_back({{"name", field.name}, {"per_agent", field.per_agent}, {"array", field.array}});
  for (const Rollout::Episode& episode : rollout.episodes)
    episodes.push_back(episode_json(rollout, episode, numbers));
  Json json = {{"env", rollout.environment},
               {"title", folder_name(rollout.environment)},
               {"run", rollout.run},
               {"version", rollout.version},
               {"roles", roles},
               {"fields", fields},
               {"drawing", drawing_json(rollout.spec.drawing)},
               {"episodes", episodes}};
  if (rollout.beside) json["beside"] = true;
  if (rollout.failure) {
    json["failure"]["message"] = rollout.failure->message;
    json["failure"]["agent"] = rollout.failure->agent < 0 ? Json() : Json(rollout.failure->agent);
  }
  return json;
}

// A shape of arrays shows as many objects as they have values.
void count_objects(Drawing& drawing, const StateLayout& layout) {
  for (drawing::Shape& shape : drawing.shapes) {
    for (const drawing::Quantity* quantity : shape.quantities()) {
      if (quantity->field.empty()) continue;
      const StateField& field = layout.field(quantity->field);
      if (field.array && shape.objects < 0) shape.objects = field.count;
    }
  }
}

}  // namespace

Rollout rollout_of(const Environment& environment, const std::string& run) {
  Rollout rollout{std::string(environment.name()),
                  run,
                  WD_VERSION,
                  environment.spec(),
                  environment.layout(),
                  dynamic_cast<const OutsideEnvironment*>(&environment) != nullptr};
  count_objects(rollout.spec.drawing, rollout.layout);
  return rollout;
}

void record(Evaluator& evaluator, const Match& match, int max_steps, Rollout& rollout, Pictures pictures) {
  Recorder recorder(max_steps, pictures);
  evaluator.play(match, &recorder);
  // "trained", or of a role that several policies share: "a trained, b random".
  std::vector<std::string> players(rollout.spec.roles.size());
  for (std::size_t s = 0; s < match.players.size(); ++s) {
    const GameSide& side = evaluator.sides()[s];
    std::string& text = players[static_cast<std::size_t>(side.role)];
    const bool shared = std::ranges::count(evaluator.sides(), side.role, &GameSide::role) > 1;
    text += concat(text.empty() ? "" : ", ", shared ? side.name + " " : "", match.players[s].name());
  }
  for (EpisodeRecord& episode : recorder.episodes())
    rollout.episodes.push_back({players, std::move(episode)});
}

std::string rollout_json(const Rollout& rollout) { return dump(description(rollout, lists)) + "\n"; }

// The probabilities of the first agents of a role: those of all would be most of a page with many agents.
Series of_first_agents(const Series& series, int agents) {
  constexpr std::size_t kMostNumbers = 250'000;
  const int each = series.width / agents;
  const auto fit = kMostNumbers / std::max<std::size_t>(series.moments() * static_cast<std::size_t>(each), 1);
  if (fit >= static_cast<std::size_t>(agents)) return series;
  Series first{each * std::max(static_cast<int>(fit), 1), {}};
  for (auto row = series.values.begin(); row != series.values.end(); row += series.width)
    first.values.insert(first.values.end(), row, row + first.width);
  return first;
}

std::string rollout_page(const Rollout& rollout) {
  Packed packed;
  Json json = description(rollout, [&](const Series& series, int agents) {
    return packed.add(agents > 0 ? of_first_agents(series, agents) : series, agents > 0);
  });
  for (std::size_t e = 0; e < rollout.episodes.size(); ++e)
    if (const auto& pictures = rollout.episodes[e].record.pictures; !pictures.empty())
      json["episodes"][e]["pictures"] = packed.add(pictures);
  std::string page = kViewer;
  fill_in(page, "{{NUMBERS}}", packed.text());
  fill_in(page, "{{ROLLOUT}}", inside_script(dump(json)));
  return page;
}

}  // namespace wd
