// eval.cpp: `wdtrain eval`: how good a run's policies are, in fresh episodes, alone or against other players.
#include <cmath>
#include <nlohmann/json.hpp>

#include "src/cli/output.h"
#include "src/cli/setup.h"
#include "src/evaluation/evaluator.h"
#include "src/suggest.h"
#include "wd/log.h"

namespace wd::cli {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kPlayers = {"trained", "random", "scripted"};  // in the order of Player

Player parse_player(const std::string& option, const std::string& word, std::size_t first = 0) {
  const std::vector<std::string> words(kPlayers.begin() + static_cast<std::ptrdiff_t>(first), kPlayers.end());
  for (std::size_t k = first; k < kPlayers.size(); ++k) {
    if (word == kPlayers[k]) return static_cast<Player>(k);
  }
  throw UsageError(option + " " + word + ": must be one of " + join(words) + suggestion(word, words));
}

// ROLE=PLAYER, over players that are all trained.
std::vector<Player> parse_players(const Spec& spec, const std::vector<std::string>& arguments) {
  std::vector<Player> players(spec.roles.size(), Player::kTrained);
  std::vector<std::string> roles;
  for (const Role& role : spec.roles) roles.push_back(role.name);
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos)
      throw UsageError("--policy " + argument + ": must be ROLE=PLAYER, ROLE being one of " + join(roles));
    const auto role = std::find(roles.begin(), roles.end(), argument.substr(0, equals));
    if (role == roles.end()) {
      throw UsageError("--policy " + argument + ": no role '" + argument.substr(0, equals) + "'" +
                       suggestion(argument.substr(0, equals), roles));
    }
    players[static_cast<std::size_t>(role - roles.begin())] =
        parse_player("--policy " + *role + " =", argument.substr(equals + 1));
  }
  return players;
}

Json interval_json(std::span<const double> values) {
  const Interval interval = mean_interval(values);
  const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  return {{"mean", number(interval.mean)}, {"low", number(interval.low)}, {"high", number(interval.high)}};
}

template <typename Value>
Json interval_of(const std::vector<Episode>& episodes, const Value& value) {
  std::vector<double> values;
  for (const Episode& episode : episodes) values.push_back(value(episode));
  return interval_json(values);
}

// Means and 95 % intervals over the episodes of one match.
Json play(Evaluator& evaluator, const Spec& spec, const Match& match) {
  const std::vector<Episode> episodes = evaluator.play(match);
  Json json = {{"players", Json::object()}, {"episodes", episodes.size()}};
  for (std::size_t r = 0; r < spec.roles.size(); ++r) {
    json["players"][spec.roles[r].name] = kPlayers[static_cast<std::size_t>(match.players[r])];
  }
  json["length"] =
      interval_of(episodes, [](const Episode& episode) { return static_cast<double>(episode.length); });
  for (std::size_t r = 0; r < spec.roles.size(); ++r) {
    json["returns"][spec.roles[r].name] =
        interval_of(episodes, [r](const Episode& episode) { return episode.returns[r]; });
  }
  json["statistics"] = Json::object();
  for (std::size_t k = 0; k < spec.statistics.size(); ++k) {
    json["statistics"][spec.statistics[k].field] =
        interval_of(episodes, [k](const Episode& episode) { return episode.statistics[k]; });
  }
  return json;
}

// Each role in turn: as trained, and at random in its place, both against the opponent.
Json play_against(Evaluator& evaluator, const Spec& spec, Match match, Player opponent) {
  if (spec.roles.size() < 2)
    throw UsageError("--opponent needs an environment of several roles; this one has " + spec.roles[0].name +
                     " alone");
  Json roles;
  for (std::size_t r = 0; r < spec.roles.size(); ++r) {
    match.players.assign(spec.roles.size(), opponent);
    for (const Player player : {Player::kTrained, Player::kRandom}) {
      match.players[r] = player;
      roles[spec.roles[r].name][kPlayers[static_cast<std::size_t>(player)]] = play(evaluator, spec, match);
    }
  }
  return roles;
}

void add_rows(const std::string& title, const Json& match, std::vector<std::vector<std::string>>& rows) {
  const auto add = [&](const std::string& name, const Json& value) {
    const auto number = [&](const char* key) {
      return value[key].is_null() ? "-" : concat(value[key].get<double>());
    };
    rows.push_back({title, name, number("mean"), concat("[", number("low"), ", ", number("high"), "]")});
  };
  add("length", match["length"]);
  for (const auto& [role, value] : match["returns"].items()) add("return of " + role, value);
  for (const auto& [name, value] : match["statistics"].items()) add(name, value);
}

std::string text(const Json& json) {
  std::vector<std::vector<std::string>> rows = {{"", "", "MEAN", "95 % INTERVAL"}};
  if (!json.contains("roles")) {
    add_rows("", json, rows);
  } else {
    for (const auto& [role, matches] : json["roles"].items()) {
      for (const auto& [player, match] : matches.items()) add_rows(concat(player, " ", role), match, rows);
    }
  }
  return concat(json["episodes"].get<int>(), " episodes of ", json["env"].get<std::string>(), "\n",
                table(rows, 0));
}

struct EvalOptions {
  std::string run, episodes = "100", seed = "1", opponent, device = "auto", threads;
  std::vector<std::string> policies, set;
  bool greedy = false, json = false;
};

ConfigSources sources_of(const EvalOptions& options) {
  if (options.run.empty()) throw UsageError("eval needs --run FOLDER, a run's folder");
  const std::filesystem::path file = std::filesystem::path(options.run) / "config.yaml";
  if (!std::filesystem::exists(file))
    throw UsageError(options.run + ": no run's folder: it has no config.yaml");
  ConfigSources sources{"", file.string(), {}, {}};
  for (const std::string& set : options.set) sources.overrides.push_back(parse_override(set));
  sources.overrides.push_back(
      {"trainer.device", options.device, "--device"});  // not where the run was trained
  if (!options.threads.empty())
    sources.overrides.push_back({"trainer.threads", options.threads, "--threads"});
  return sources;
}

Json evaluate(const Setup& setup, const EvalOptions& options) {
  const Spec spec = setup.environment->spec();
  Match match;
  match.players = parse_players(spec, options.policies);
  match.episodes = static_cast<int>(parse_integer("--episodes", options.episodes, {1, 1e6}));
  match.seed = static_cast<std::uint64_t>(parse_integer("--seed", options.seed, TrainerSettings::kSeeds));
  match.greedy = options.greedy;
  Evaluator evaluator(setup.config, *setup.row, *setup.environment, options.run, setup.device);
  if (evaluator.precision() != setup.config.trainer.precision)
    logging::warn("the run was trained in tf32, which a CPU does not have: it is played in fp32");
  Json json = {
      {"run", options.run}, {"env", setup.row->name}, {"device", setup.device.is_cuda() ? "cuda" : "cpu"},
      {"seed", match.seed}, {"greedy", match.greedy}, {"episodes", match.episodes}};
  if (options.opponent.empty()) {
    json.update(play(evaluator, spec, match));
  } else {
    if (!options.policies.empty())
      throw UsageError("--opponent and --policy both choose the players: give one of them");
    json["opponent"] = options.opponent;
    json["roles"] = play_against(evaluator, spec, match, parse_player("--opponent", options.opponent, 1));
  }
  return json;
}

}  // namespace

int eval(const CommandLine& line) {
  Arguments arguments(
      line, "eval", "Play fresh episodes with a run's policies: returns and statistics with 95 % intervals.");
  EvalOptions options;
  arguments.option("-r,--run", options.run, "FOLDER", "run folder");
  arguments.option("--episodes", options.episodes, "INT", "episodes of each match (100)");
  arguments.flag("--greedy", options.greedy, "trained players take their likeliest action");
  arguments.option("--seed", options.seed, "INT", "of the episodes; never one of training's (1)");
  arguments.option("--opponent", options.opponent, "random | scripted",
                   "play each trained role in turn against such opponents, and a random player in its place");
  arguments.repeatable("--policy", options.policies, "ROLE=PLAYER",
                       "trained, random or scripted; may be repeated");
  arguments.repeatable("-s,--set", options.set, "env.KEY=VALUE",
                       "change a setting of the run; may be repeated");
  arguments.option("--device", options.device, "auto | cpu | cuda", "auto: a GPU where there is one");
  arguments.option("--threads", options.threads, "INT", "CPU threads");
  arguments.flag("--json", options.json, "one JSON object on stdout");
  if (!arguments.parse()) return 0;
  const Setup setup = load_setup(sources_of(options));
  const Json json = evaluate(setup, options);
  print(options.json ? json.dump() + "\n" : text(json));
  return 0;
}

}  // namespace wd::cli
