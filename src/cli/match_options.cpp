// match_options.cpp: parses players, starts and settings of a match.
#include "src/cli/match_options.h"

#include <algorithm>
#include <map>
#include <set>

#include "src/base/join.h"
#include "src/base/log.h"
#include "src/base/suggest.h"
#include "src/cli/runs.h"
#include "src/cli/setup.h"
#include "wd/checkpoint.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

constexpr std::string_view kAverage = "average";  // the run's own policy, with the average of its weights
const std::vector<std::string> kStarts = {"training", "fresh"};  // in the order of Starts

// The sides that a name means: one of them, or all of a policy; none if there is no such name.
std::vector<std::size_t> sides_named(const std::string& name, const std::vector<GameSide>& sides,
                                     const std::vector<std::string>& policies) {
  std::vector<std::size_t> found;
  for (std::size_t s = 0; s < sides.size(); ++s)
    if (sides[s].name == name) return {s};
  for (std::size_t s = 0; s < sides.size(); ++s)
    if (policies[static_cast<std::size_t>(sides[s].policy)] == name) found.push_back(s);
  return found;
}

FoundPlayer parse_player(const std::string& option, const std::string& given, const Experiment& setup,
                         const GameSide& side) {
  if (given == kAverage) {
    require_average(concat(option, given), setup.config.policies[static_cast<std::size_t>(side.policy)]);
    return {.spec = {PlayerSpec::kSelf}, .average = true};
  }
  PlayerSpec player = PlayerSpec::of(given);
  if (player.kind == PlayerSpec::kRun) player.run = one_run(given);
  try {
    return find_player(player, *setup.environment, setup.config, side);
  } catch (const UsageError& error) {
    throw UsageError(concat(option, error.what()));
  }
}

// This player on every side.
std::vector<FoundPlayer> on_all_sides(const std::string& option, const std::string& given,
                                      const Experiment& setup, const std::vector<GameSide>& sides) {
  std::vector<FoundPlayer> players;
  for (const GameSide& side : sides) players.push_back(parse_player(option, given, setup, side));
  return players;
}

// Parses NAME=PLAYER arguments. All other sides have trained players.
std::vector<FoundPlayer> parse_players(const Experiment& setup, const std::vector<GameSide>& sides,
                                       const std::vector<std::string>& arguments) {
  std::vector<FoundPlayer> players(sides.size());
  std::vector<std::string> names;
  for (const GameSide& side : sides) names.push_back(side.name);
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos)
      throw UsageError("--policy " + argument + ": must be NAME=PLAYER, NAME being one of " + join(names));
    const std::string name = argument.substr(0, equals);
    const std::vector<std::size_t> named = sides_named(name, sides, setup.policy_names());
    if (named.empty())
      throw UsageError("--policy " + argument + ": no role or policy '" + name + "'" +
                       suggestion(name, names));
    for (const std::size_t s : named)
      players[s] = parse_player("--policy " + name + "=", argument.substr(equals + 1), setup, sides[s]);
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

// The folder of policies that come with wd.
std::string find_pretrained(const std::string& name) {
  std::set<std::string> known;
  for (const std::filesystem::path& configs : config_folders()) {
    std::error_code missing;
    for (const auto& entry : std::filesystem::directory_iterator(configs / "pretrained", missing)) {
      if (entry.path().filename() == name) return entry.path().string();
      known.insert(entry.path().filename().string());
    }
  }
  throw UsageError(concat("--pretrained ", name, ": wd has no trained policies of it",
                          suggestion(name, {known.begin(), known.end()})));
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
  arguments.word("RUN", word_, "folder of a run, or of one of its checkpoints; latest: the newest below runs",
                 "RUN|CHECKPOINT");
  arguments.option("-r,--run", option_, "RUN|CHECKPOINT", "the same");
  arguments.option("--pretrained", pretrained, "ENV", "policies of this environment that come with wd");
  arguments.repeatable(
      "--policy", policies_, "NAME=PLAYER",
      "who plays a role, or for a policy: self, average (of its weights), random, scripted, a run, "
      "a checkpoint; may be repeated");
  add_how(arguments);
}

void MatchOptions::add_how(Arguments& arguments) {
  arguments.flag("--greedy", greedy_, "trained players take their most likely action");
  arguments.number("--seed", seed_, TrainerSettings::kSeeds, "INT",
                   "seed of the episodes, different from all of training (1)");
  arguments.option(
      "--starts", starts_, "training | fresh",
      "start states of episodes; default: those of training if env.reset is fixed, pool or given, else "
      "fresh ones");
  arguments.repeatable("-s,--set", set_, "env.KEY=VALUE",
                       "change the environment, trainer.precision or trainer.observations; may be repeated");
  arguments.option("-e,--env", env_, "PATH.cu", kSourceHelp);
  arguments.flag("--trust", trusted_, kTrustHelp);
  arguments.option("--device", device_, "auto | cpu | cuda", "auto: a GPU if there is one, else the CPU");
  arguments.option("--threads", threads_, "INT", "CPU threads");
}

void MatchOptions::need_run(const std::string& command) {
  std::string given;
  for (const std::string& one : {word_, option_.empty() ? "" : "--run " + option_,
                                 pretrained.empty() ? "" : "--pretrained " + pretrained}) {
    if (!one.empty() && !given.empty())
      throw UsageError(concat(command, " plays one run: give ", given, " or ", one));
    given += one;
  }
  run = pretrained.empty() ? one_run(word_.empty() ? option_ : word_) : find_pretrained(pretrained);
  if (run.empty())
    throw UsageError(command + " needs RUN, a run's folder or a checkpoint's, or --pretrained ENV");
}

ConfigSources sources_of_own_run(const std::string& run) {
  ConfigSources sources = sources_of_run(run);
  check_program_of(run);
  sources.overrides.push_back({"trainer.device", "auto", "--device"});  // not that of the training
  return sources;
}

Experiment load_to_play(const ConfigSources& sources) {
  Experiment setup = load_setup(sources);
  if (setup.config.trainer.precision == kTf32 && !setup.device.is_cuda()) {
    logging::warn("the run was trained in tf32, which a CPU does not have: it is played in fp32");
    setup.config.trainer.precision = kFp32;
  }
  return setup;
}

Experiment MatchOptions::load() const {
  ConfigSources sources = sources_of_own_run(run);
  sources.env = env_;
  sources.trusted = trusted_;
  for (const std::string& set : set_) sources.overrides.push_back(parse_setting(set));
  sources.overrides.push_back({"trainer.device", device_, "--device"});
  if (!threads_.empty()) sources.overrides.push_back({"trainer.threads", threads_, "--threads"});
  return load_to_play(sources);
}

Match MatchOptions::match(const Experiment& setup, const std::vector<GameSide>& sides) const {
  Match match;
  match.players = parse_players(setup, sides, policies_);
  match.seed = seed_;
  match.greedy = greedy_;
  match.starts = parse_starts(starts_, setup.config.env);
  return match;
}

std::vector<Match> MatchOptions::against(const Experiment& setup, const std::vector<GameSide>& sides,
                                         const std::string& opponent) const {
  if (!policies_.empty())
    throw UsageError("--opponent and --policy both choose the players: give one of them");
  if (sides.size() < 2)
    throw UsageError(concat("--opponent needs a game of several roles, and here ", sides[0].name,
                            " is alone: eval --compare plays with it and with others in its place; to play ",
                            opponent, " actions in its place, give --policy ", sides[0].name, '=', opponent));
  return matches_against(match(setup, sides), on_all_sides("--opponent ", opponent, setup, sides));
}

Match MatchOptions::with(const Experiment& setup, const std::vector<GameSide>& sides,
                         const std::string& option, const std::string& player) const {
  Match other = match(setup, sides);
  other.players = on_all_sides(option, player, setup, sides);
  return other;
}

const std::string& word_of(Starts starts) { return kStarts[static_cast<std::size_t>(starts)]; }

}  // namespace wd::cli
