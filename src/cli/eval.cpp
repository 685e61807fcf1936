// eval.cpp: `wdtrain eval`: plays fresh episodes with a run's policies, alone or against other players.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "src/base/log.h"
#include "src/base/suggest.h"
#include "src/cli/output.h"
#include "src/cli/setup.h"
#include "src/evaluation/evaluator.h"
#include "wd/checkpoint.h"

namespace wd::cli {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kPlayers = {"trained", "random", "scripted"};  // in the order of Player

Player parse_player(const std::string& option, const std::string& word, std::size_t first = 0) {
  const std::vector<std::string> words(kPlayers.begin() + static_cast<std::ptrdiff_t>(first), kPlayers.end());
  return static_cast<Player>(first + parse_word(option, word, words));
}

// Parses ROLE=PLAYER arguments. All other roles are trained players.
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
  return {{"mean", number(interval.mean)},
          {"low", number(interval.low)},
          {"high", number(interval.high)},
          {"std", number(interval.deviation)}};
}

template <typename Value>
Json interval_of(const std::vector<Episode>& episodes, const Value& value) {
  std::vector<double> values;
  for (const Episode& episode : episodes) values.push_back(value(episode));
  return interval_json(values);
}

// Returns means, 95 % intervals and standard deviations over the episodes of one match.
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

// For each role in turn, plays the trained policy and a random player instead of it, both against the
// opponent.
Json play_against(Evaluator& evaluator, const Spec& spec, Match match, Player opponent) {
  if (spec.roles.size() < 2)
    throw UsageError(concat("--opponent needs a game of several roles, and here ", spec.roles[0].name,
                            " is alone: to play ", kPlayers[static_cast<std::size_t>(opponent)],
                            " actions in its place, give --policy ", spec.roles[0].name, '=',
                            kPlayers[static_cast<std::size_t>(opponent)]));
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
    rows.push_back(
        {title, name, number("mean"), concat("[", number("low"), ", ", number("high"), "]"), number("std")});
  };
  add("length", match["length"]);
  for (const auto& [role, value] : match["returns"].items()) add("return of " + role, value);
  for (const auto& [name, value] : match["statistics"].items()) add(name, value);
}

std::string text(const Json& json) {
  std::vector<std::vector<std::string>> rows = {{"", "", "MEAN", "95 % INTERVAL", "STD"}};
  if (!json.contains("roles")) {
    add_rows("", json, rows);
  } else {
    for (const auto& [role, matches] : json["roles"].items()) {
      for (const auto& [player, match] : matches.items()) add_rows(concat(player, " ", role), match, rows);
    }
  }
  return concat(json["episodes"].get<int>(), " episodes of ", json["env"].get<std::string>(), ", ",
                json["starts"] == "fresh" ? "fresh starts" : "starts of the training", "\n", table(rows, 0));
}

struct EvalOptions {
  std::string run, starts, opponent, device = "auto", threads;
  int episodes = 100;
  std::uint64_t seed = 1;
  std::vector<std::string> policies, set;
  bool greedy = false, json = false;
};

const std::vector<std::string> kStarts = {"training", "fresh"};  // in the order of Starts

Starts parse_starts(const std::string& word, const EnvSettings& env) {
  if (word.empty()) return usual_starts(env);
  const auto starts = static_cast<Starts>(parse_word("--starts", word, kStarts));
  if (starts == Starts::kFresh && env.reset == ResetMode::kGiven)
    throw UsageError(
        "--starts fresh: env.reset = given takes its starts from a file, and there are no others; --set "
        "env.reset=random draws them");
  return starts;
}

// An evaluation accepts settings of the environment, of observation storage and of network precision. All
// other settings affect only training and would have no effect.
Override parse_setting(const std::string& text) {
  const Override setting = parse_override(text);
  static const std::set<std::string> kOthers = {"env", "trainer.precision", "trainer.observations"};
  if (setting.path.starts_with("env.") || kOthers.contains(setting.path)) return setting;
  static const std::map<std::string, std::string> kOptions = {
      {"trainer.seed", "--seed"}, {"trainer.device", "--device"}, {"trainer.threads", "--threads"}};
  const auto option = kOptions.find(setting.path);
  throw UsageError(concat("--set ", text, ": has no effect on an evaluation; ",
                          option != kOptions.end()
                              ? concat("its own option is ", option->second)
                              : "it takes env.KEY, trainer.precision and trainer.observations"));
}

ConfigSources sources_of(const EvalOptions& options) {
  if (options.run.empty()) throw UsageError("eval needs --run FOLDER, a run's folder or a checkpoint's");
  const std::filesystem::path folder = options.run, file = folder / "config.yaml";
  if (!std::filesystem::is_directory(folder)) throw UsageError(options.run + ": there is no such folder");
  if (is_checkpoint(folder)) {
    open_checkpoint(std::filesystem::canonical(folder), CheckpointParts::kWeights);
  } else if (!std::filesystem::exists(file)) {
    throw UsageError(options.run + ": is no run's folder: it has no config.yaml");
  }
  ConfigSources sources{"", file.string(), {}, {}};
  for (const std::string& set : options.set) sources.overrides.push_back(parse_setting(set));
  sources.overrides.push_back(
      {"trainer.device", options.device, "--device"});  // not the device that the run was trained on
  if (!options.threads.empty())
    sources.overrides.push_back({"trainer.threads", options.threads, "--threads"});
  return sources;
}

Json evaluate(const Experiment& setup, const EvalOptions& options) {
  const Spec spec = setup.environment->spec();
  Match match;
  match.players = parse_players(spec, options.policies);
  match.episodes = options.episodes;
  match.seed = options.seed;
  match.greedy = options.greedy;
  match.starts = parse_starts(options.starts, setup.config.env);
  Evaluator evaluator(setup.config, *setup.environment, options.run, setup.device);
  if (evaluator.precision() != setup.config.trainer.precision)
    logging::warn("the run was trained in tf32, which a CPU does not have: it is played in fp32");
  Json json = {{"run", options.run},
               {"env", setup.environment->name()},
               {"device", setup.device.is_cuda() ? "cuda" : "cpu"},
               {"seed", match.seed},
               {"greedy", match.greedy},
               {"starts", kStarts[static_cast<std::size_t>(match.starts)]},
               {"episodes", match.episodes}};
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
  arguments.option("-r,--run", options.run, "FOLDER", "folder of a run, or of one of its checkpoints");
  arguments.number("--episodes", options.episodes, {1, 1e6}, "INT", "episodes per match (100)");
  arguments.flag("--greedy", options.greedy, "trained players take their most likely action");
  arguments.number("--seed", options.seed, TrainerSettings::kSeeds, "INT",
                   "seed of the episodes, different from all of training (1)");
  arguments.option(
      "--starts", options.starts, "training | fresh",
      "start states of episodes; default: those of training if env.reset is fixed, pool or given, else "
      "fresh ones");
  arguments.option("--opponent", options.opponent, "random | scripted",
                   "play each trained role in turn against such opponents, and for comparison a random "
                   "player instead of it");
  arguments.repeatable("--policy", options.policies, "ROLE=PLAYER",
                       "trained, random or scripted; may be repeated");
  arguments.repeatable("-s,--set", options.set, "env.KEY=VALUE",
                       "change the environment, trainer.precision or trainer.observations; may be repeated");
  arguments.option("--device", options.device, "auto | cpu | cuda",
                   "auto: a GPU if there is one, else the CPU");
  arguments.option("--threads", options.threads, "INT", "CPU threads");
  arguments.flag("--json", options.json, "print one JSON object");
  arguments.words_belong_to("--run");
  if (!arguments.parse()) return 0;
  const Experiment setup = load_setup(sources_of(options));
  const Json json = evaluate(setup, options);
  print(options.json ? json.dump() + "\n" : text(json));
  return 0;
}

}  // namespace wd::cli
