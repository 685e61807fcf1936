// match_options.cpp: parses players, starts and settings of a match.
#include "src/cli/match_options.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "src/base/join.h"
#include "src/base/log.h"
#include "src/base/suggest.h"
#include "src/cli/setup.h"
#include "wd/checkpoint.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

const std::vector<Player> kPlayers = {Player::kTrained, Player::kRandom, Player::kScripted};
const std::vector<std::string> kStarts = {"training", "fresh"};  // in the order of Starts

Player parse_player(const std::string& option, const std::string& word, std::size_t first = 0) {
  std::vector<std::string> words;
  for (std::size_t p = first; p < kPlayers.size(); ++p) words.emplace_back(word_of(kPlayers[p]));
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

// A match accepts settings of the environment, of observation storage and of network precision. All other
// settings affect only training and would have no effect.
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

}  // namespace

Starts parse_starts(const std::string& word, const EnvSettings& env) {
  if (word.empty()) return usual_starts(env);
  const auto starts = static_cast<Starts>(parse_word("--starts", word, kStarts));
  if (starts == Starts::kFresh && env.reset == ResetMode::kGiven)
    throw UsageError(
        "--starts fresh: env.reset = given takes its starts from a file, and there are no others; --set "
        "env.reset=random draws them");
  return starts;
}

void MatchOptions::add_to(Arguments& arguments) {
  arguments.word("RUN", word_, "folder of a run, or of one of its checkpoints");
  arguments.option("-r,--run", option_, "RUN|CHECKPOINT", "the same");
  arguments.flag("--greedy", greedy_, "trained players take their most likely action");
  arguments.number("--seed", seed_, TrainerSettings::kSeeds, "INT",
                   "seed of the episodes, different from all of training (1)");
  arguments.option(
      "--starts", starts_, "training | fresh",
      "start states of episodes; default: those of training if env.reset is fixed, pool or given, else "
      "fresh ones");
  arguments.repeatable("--policy", policies_, "ROLE=PLAYER", "trained, random or scripted; may be repeated");
  arguments.repeatable("-s,--set", set_, "env.KEY=VALUE",
                       "change the environment, trainer.precision or trainer.observations; may be repeated");
  arguments.option("--device", device_, "auto | cpu | cuda", "auto: a GPU if there is one, else the CPU");
  arguments.option("--threads", threads_, "INT", "CPU threads");
}

void MatchOptions::need_run(const std::string& command) {
  if (!word_.empty() && !option_.empty())
    throw UsageError(concat(command, " plays one run: give ", word_, " or --run ", option_));
  run = word_.empty() ? option_ : word_;
  if (run.empty()) throw UsageError(command + " needs RUN, a run's folder or a checkpoint's");
}

ConfigSources sources_of_run(const std::string& run) {
  const std::filesystem::path folder = run, file = folder / "config.yaml";
  if (!std::filesystem::is_directory(folder)) throw UsageError(run + ": there is no such folder");
  if (is_checkpoint(folder)) {
    open_checkpoint(std::filesystem::canonical(folder), CheckpointParts::kWeights);
  } else if (!std::filesystem::exists(file)) {
    throw UsageError(run + ": is not a run's folder: it has no config.yaml");
  }
  check_program_of(folder);
  return {"", file.string(), {}, {}};
}

ConfigSources MatchOptions::sources() const {
  ConfigSources sources = sources_of_run(run);
  for (const std::string& set : set_) sources.overrides.push_back(parse_setting(set));
  sources.overrides.push_back(
      {"trainer.device", device_, "--device"});  // not the device that the run was trained on
  if (!threads_.empty()) sources.overrides.push_back({"trainer.threads", threads_, "--threads"});
  return sources;
}

Match MatchOptions::match(const Experiment& setup) const {
  Match match;
  match.players = parse_players(setup.environment->spec(), policies_);
  match.seed = seed_;
  match.greedy = greedy_;
  match.starts = parse_starts(starts_, setup.config.env);
  return match;
}

std::vector<Match> MatchOptions::against(const Experiment& setup, const std::string& opponent) const {
  const Spec spec = setup.environment->spec();
  const Player player = parse_player("--opponent", opponent, 1);
  if (!policies_.empty())
    throw UsageError("--opponent and --policy both choose the players: give one of them");
  if (spec.roles.size() < 2)
    throw UsageError(concat("--opponent needs a game of several roles, and here ", spec.roles[0].name,
                            " is alone: to play ", opponent, " actions in its place, give --policy ",
                            spec.roles[0].name, '=', opponent));
  return matches_against(match(setup), player);
}

Evaluator make_evaluator(const Experiment& setup, const std::string& run) {
  Evaluator evaluator(setup.config, *setup.environment, weights_of(run), setup.device);
  if (evaluator.precision() != setup.config.trainer.precision)
    logging::warn("the run was trained in tf32, which a CPU does not have: it is played in fp32");
  return evaluator;
}

const std::string& word_of(Starts starts) { return kStarts[static_cast<std::size_t>(starts)]; }

}  // namespace wd::cli
