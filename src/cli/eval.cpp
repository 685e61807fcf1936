// eval.cpp: `wdtrain eval`: plays fresh episodes with a run's policies, alone or against other players.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "src/base/json.h"
#include "src/cli/match_options.h"
#include "src/cli/output.h"
#include "src/cli/setup.h"
#include "src/game/endless.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Interval& interval) {  // null if not finite
  return {
      {"mean", interval.mean}, {"low", interval.low}, {"high", interval.high}, {"std", interval.deviation}};
}

// Returns means, 95 % intervals and standard deviations over the episodes of one match.
Json play(Evaluator& evaluator, const Spec& spec, const Match& match) {
  const std::vector<GameSide>& sides = evaluator.sides();
  const std::vector<Episode> episodes = evaluator.play(match);
  const int longest = std::ranges::max_element(episodes, {}, &Episode::length)->length;
  if (const std::string text = endless(spec, longest, kLongestPlayed); !text.empty()) throw UsageError(text);
  Json json = {{"players", Json::object()}, {"episodes", episodes.size()}};
  for (std::size_t s = 0; s < sides.size(); ++s) json["players"][sides[s].name] = match.players[s].name();
  json["length"] =
      json_of(interval_of(episodes, [](const Episode& one) { return static_cast<double>(one.length); }));
  for (std::size_t s = 0; s < sides.size(); ++s) {
    json["returns"][sides[s].name] =
        json_of(interval_of(episodes, [s](const Episode& one) { return one.returns[s]; }));
  }
  json["statistics"] = Json::object();
  for (std::size_t k = 0; k < spec.statistics.size(); ++k)
    json["statistics"][spec.statistics[k].field] = json_of(interval_of_statistic(episodes, k));
  return json;
}

// For each side in turn, plays its player and a random player instead of it, both against the opponent.
Json play_against(Evaluator& evaluator, const Spec& spec, const std::vector<Match>& matches) {
  Json sides;
  for (std::size_t s = 0; s < matches.size(); ++s) {
    Match match = matches[s];
    for (const FoundPlayer& player : {match.players[s], FoundPlayer{{PlayerSpec::kRandom}}}) {
      match.players[s] = player;
      sides[evaluator.sides()[s].name][player.name()] = play(evaluator, spec, match);
    }
  }
  return sides;
}

// Plays with the policies, then with random and, if the game has them, scripted players instead of all of
// them, from the same starts.
Json compare(Evaluator& evaluator, const Spec& spec, Match match, bool has_script) {
  Json players;
  for (const auto kind : {PlayerSpec::kSelf, PlayerSpec::kRandom, PlayerSpec::kScripted}) {
    if (kind == PlayerSpec::kScripted && !has_script) continue;
    match.players.assign(match.players.size(), {{kind}});
    players[match.players.front().name()] = play(evaluator, spec, match);
  }
  return players;
}

void add_rows(const std::string& title, const Json& match, std::vector<std::vector<std::string>>& rows) {
  const auto add = [&](const std::string& name, const Json& value) {
    const auto number = [&](const char* key) {
      const double read = value[key];
      return std::isfinite(read) ? concat(read) : "-";
    };
    rows.push_back(
        {title, name, number("mean"), concat("[", number("low"), ", ", number("high"), "]"), number("std")});
  };
  add("length", match["length"]);
  for (const auto& [role, value] : match["returns"].items()) add("return of " + role, value);
  for (const auto& [name, value] : match["statistics"].items()) add(name, value);
}

std::string text(const Json& json) {
  std::vector<std::vector<std::string>> rows = {{"", "", "MEAN", "95 % INTERVAL", "STD"}};
  if (json.contains("compared")) {
    for (const auto& [player, match] : json["compared"].items()) add_rows(player, match, rows);
  } else if (!json.contains("roles")) {
    add_rows("", json, rows);
  } else {
    for (const auto& [role, matches] : json["roles"].items()) {
      for (const auto& [player, match] : matches.items()) add_rows(concat(player, " ", role), match, rows);
    }
  }
  return concat(
      json["episodes"].get<int>(), " episodes of ", json["env"].get<std::string>(), ", ",
      json["starts"] == "fresh" ? "fresh starts" : "starts of the training", "\n", table(rows, 0),
      json.contains("compared") && json["compared"].front()["returns"].size() > 1
          ? "all roles change together: --opponent random plays each trained role against random ones\n"
          : "");
}

struct EvalOptions {
  MatchOptions match;
  std::string opponent;
  int episodes = 100;
  bool json = false, compares = false;
};

Json evaluate(const Experiment& setup, const EvalOptions& options) {
  const Spec spec = setup.environment->spec();
  Evaluator evaluator(setup.config, *setup.environment, weights_of(options.match.run), setup.device);
  Match match = options.match.match(setup, evaluator.sides());
  match.episodes = options.episodes;
  Json json = {{"run", options.match.run},
               {"env", setup.environment->name()},
               {"device", setup.device.is_cuda() ? "cuda" : "cpu"},
               {"seed", match.seed},
               {"greedy", match.greedy},
               {"starts", word_of(match.starts)},
               {"episodes", match.episodes}};
  if (options.compares) {
    const auto trained = [](const FoundPlayer& player) { return player.name() == FoundPlayer().name(); };
    if (!options.opponent.empty() || !std::ranges::all_of(match.players, trained))
      throw UsageError("--compare chooses the players, as --opponent and --policy do: give one of them");
    json["compared"] = compare(evaluator, spec, match, setup.environment->has_script());
  } else if (options.opponent.empty()) {
    json.update(play(evaluator, spec, match));
  } else {
    std::vector<Match> matches = options.match.against(setup, evaluator.sides(), options.opponent);
    for (Match& each : matches) each.episodes = options.episodes;
    json["opponent"] = options.opponent;
    json["roles"] = play_against(evaluator, spec, matches);
  }
  return json;
}

}  // namespace

int eval(const CommandLine& line) {
  Arguments arguments(
      line, "eval", "Play fresh episodes with a run's policies: returns and statistics with 95 % intervals.");
  EvalOptions options;
  options.match.add_to(arguments);
  arguments.number("--episodes", options.episodes, {1, 1e6}, "INT", "episodes per match (100)");
  arguments.option(
      "--opponent", options.opponent, "PLAYER",
      "play each trained role in turn against this player, and for comparison a random one instead of it");
  arguments.flag("--compare", options.compares,
                 "play with the policies, and from the same starts with random and, if there are any, "
                 "scripted players instead of all of them");
  arguments.flag("--json", options.json, "print one JSON object");
  if (!arguments.parse()) return 0;
  options.match.need_run("eval");
  const Experiment setup = options.match.load();
  const Json json = evaluate(setup, options);
  print(options.json ? dump(json) + "\n" : text(json));
  return 0;
}

}  // namespace wd::cli
