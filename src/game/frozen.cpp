// frozen.cpp: finds a policy in the folder of a run, and compares its spaces with those of a game.
#include "src/game/frozen.h"

#include <algorithm>
#include <iterator>

#include "src/base/files.h"
#include "src/base/hex.h"
#include "src/base/join.h"
#include "src/base/name.h"
#include "src/base/printable.h"
#include "src/base/suggest.h"
#include "src/checkpoint/manifest.h"
#include "src/config/role_names.h"
#include "src/outside/python.h"
#include "wd/checkpoint.h"
#include "wd/error.h"
#include "wd/experiment.h"
#include "wd/weights.h"

namespace wd {
namespace {

namespace fs = std::filesystem;

// The first difference between the spaces of a role there and here; empty: none.
std::string difference(const Role& there, const Role& here) {
  if (there.observation_size() != here.observation_size())
    return concat("observes ", there.observation_size(), " numbers there, and ", here.observation_size(),
                  " here");
  if (!std::ranges::equal(there.observation, here.observation))
    return "observes other things there than here";
  if (!(there.action == here.action)) return "has other actions there than here";
  if (there.action_mask != here.action_mask) return "has action masks only there or only here";
  return "";
}

// The policy of another run of this environment that plays for this role: the one of this name, the only one
// whose spaces are the role's, or the one that is called as the policy here. One that acts there for a role
// of the same name comes first.
FrozenPolicy choose(const std::string& path, const std::string& named, ConfigSources sources,
                    const Spec& spec, const Role& role, const std::string& policy) {
  sources.spec = &spec;
  const Experiment run = load_environment(sources);
  const Spec other = is_python_environment(run.config.name) ? spec : run.environment->spec();
  const std::vector<std::string> names = run.policy_names();
  if (!named.empty() && !contains(names, named))
    throw UsageError(concat(path, ": there is no policy '", named, "', but ", join(names)));
  std::vector<std::string> able, same_role;
  std::string differs;
  for (const GameSide& side : sides_of(other, run.config.seats, names)) {
    const Role& there = other.roles[static_cast<std::size_t>(side.role)];
    const std::string& name = names[static_cast<std::size_t>(side.policy)];
    if (!named.empty() && name != named) continue;
    const std::string reason = difference(there, role);
    if (!reason.empty() && (differs.empty() || there.name == role.name))
      differs = concat("'", there.name, "' ", reason);
    if (!reason.empty()) continue;
    if (!contains(able, name)) able.push_back(name);
    if (there.name == role.name && !contains(same_role, name)) same_role.push_back(name);
  }
  if (able.empty()) throw UsageError(concat(path, ": ", differs, ": the spaces must be the same"));
  if (!same_role.empty()) able = same_role;
  const std::string wanted = able.size() == 1 ? able.front() : policy;
  if (!contains(able, wanted))
    throw UsageError(concat(path, ": for '", role.name, "' can play ", join(able), ": name one of them, as ",
                            path, ':', able.front()));
  FrozenPolicy frozen{.path = path,
                      .settings = *std::ranges::find(run.config.policies, wanted, &PolicySettings::name)};
  for (const std::string& stream : frozen.settings.model.all_reads())
    if (stream != "observation" && stream != InputPart::kAgentId &&
        std::ranges::find(spec.streams, stream, &StreamSpec::name) == spec.streams.end())
      throw UsageError(concat(path, ": reads the stream '", stream, "', which this game does not have"));
  return frozen;
}

}  // namespace

std::pair<std::string, std::string> parts_of_player(const std::string& path, const fs::path& base) {
  const std::size_t colon = path.rfind(':');
  if (fs::is_directory(base / path) || colon == std::string::npos) return {path, ""};
  return {path.substr(0, colon), path.substr(colon + 1)};
}

ConfigSources sources_of_run(const std::string& run) {
  const fs::path folder = run, file = folder / "config.yaml";
  if (!fs::is_directory(folder)) throw UsageError(run + ": there is no such folder of a run or a checkpoint");
  if (is_checkpoint(folder)) {
    open_checkpoint(fs::canonical(folder), CheckpointParts::kWeights);
  } else if (!fs::exists(file)) {
    throw UsageError(run + ": is not a run's folder: it has no config.yaml");
  }
  ConfigSources sources{.file = file.string()};
  sources.of_run = true;
  return sources;
}

fs::path weights_file(const fs::path& run, const std::string& policy) {
  const fs::path file = run / "weights" / (policy + ".safetensors"), newest = run / "checkpoints/latest";
  std::error_code unreadable;
  if (!fs::exists(file, unreadable))
    throw UsageError(
        concat(file.string(), ": there is no such file",
               fs::exists(newest, unreadable)
                   ? concat("; the run is under way, or has not saved weights: name ", newest.string())
                   : ""));
  try {
    const SafetensorsReader header(file);
  } catch (const std::exception& error) {
    throw UsageError(error.what());
  }
  return file;
}

FrozenPolicy find_frozen(const std::string& path, const std::string& environment, const Spec& spec,
                         const Role& role, const std::string& policy) {
  auto [folder, named] = parts_of_player(path);
  const std::string_view suffix = kAverageSuffix;
  const bool average = named.ends_with(suffix);
  if (average) named.resize(named.size() - suffix.size());
  ConfigSources sources = sources_of_run(folder);
  // Before anything of it is loaded.
  if (const std::string other = environment_of_run(sources.file); kept_name(other) != kept_name(environment))
    throw UsageError(concat(path, ": is a run of ", on_one_line(other), ", and this game is ", environment));
  sources.env = environment;  // its policy plays in this game, wherever a source file of the run's was
  FrozenPolicy frozen = choose(path, named, sources, spec, role, policy);
  frozen.config = read_regular(sources.file, kMaxInput).value_or("");
  if (average) require_average(path, frozen.settings);
  frozen.weights = weights_file(folder, average ? average_name(frozen.settings.name) : frozen.settings.name);
  frozen.source = fs::canonical(folder).string();
  frozen.digest = hex(checkpoint::digest_of(frozen.weights).xxh3);
  return frozen;
}

void require_average(const std::string& player, const PolicySettings& settings) {
  if (settings.average == 0.0)
    throw UsageError(concat(player, ": the run has no average of the weights of '", settings.name,
                            "': it was trained with policy.", settings.name, ".average = 0"));
}

bool FoundPlayer::remembers() const {
  return frozen &&
         (frozen->settings.model.state_size() > 0 || frozen->settings.algorithm->traits().carries_noise);
}

void require_script(const Environment& environment) {
  if (!environment.has_script())
    throw UsageError(concat("environment ", environment.name(), " has no scripted player"));
}

FoundPlayer find_player(const PlayerSpec& player, const Environment& environment, const Config& config,
                        const GameSide& side) {
  if (player.kind == PlayerSpec::kScripted) require_script(environment);
  if (player.kind == PlayerSpec::kPool)
    throw UsageError("pool: past selves play in a training, as opponents.NAME lists them; name a run");
  if (player.kind != PlayerSpec::kRun) return {player};
  const std::vector<std::string> words(PlayerSpec::kWords, PlayerSpec::kWords + PlayerSpec::kPool);
  if (!fs::is_directory(parts_of_player(player.run).first))
    throw UsageError(concat(player.run, ": is none of ", join(words),
                            ", and no folder of a run or a checkpoint", did_you_mean(player.run, words)));
  const Spec spec = environment.spec();
  return {player, std::make_shared<const FrozenPolicy>(
                      find_frozen(player.run, config.name, spec, spec.roles[std::size_t(side.role)],
                                  config.policies[std::size_t(side.policy)].name))};
}

std::vector<FoundPlayer> find_players(const PlayerSpec& player, const Environment& environment,
                                      const Config& config) {
  std::vector<FoundPlayer> found;
  for (const GameSide& side : sides_of(environment.spec(), config.seats, policy_names(config)))
    found.push_back(find_player(player, environment, config, side));
  return found;
}

std::unique_ptr<Player> player_without_policy(PlayerSpec::Kind kind, Game& game, std::size_t index,
                                              ActionUnit unit) {
  if (kind == PlayerSpec::kScripted) return std::make_unique<ScriptedPlayer>(game, unit);
  return std::make_unique<RandomPlayer>(game.replicas().device(), index, unit);
}

std::vector<FoundPlayer> kept_opponents(const Config& config, const Spec& spec, const Role& role,
                                        const std::string& policy) {
  std::vector<FoundPlayer> kept;
  const fs::path folder = config.checkpoint / kOpponentsFolder;
  if (!config.checkpoint.empty() && fs::exists(folder / (policy + ".safetensors")))
    throw UsageError(concat(config.checkpoint.string(),
                            ": was written by an earlier version of wd, which kept "
                            "opponents in another form: begin a new run with its weights (--warm_start)"));
  for (int k = 1; !config.checkpoint.empty(); ++k) {
    const fs::path file = folder / concat(policy, ".", k, ".safetensors");
    if (!fs::exists(file)) break;
    const TensorMetadata metadata = SafetensorsReader(file).metadata();
    const auto said = [&](const char* key) {
      const auto found = metadata.find(key);
      WD_CHECK(found != metadata.end(), file.string(), ": does not say its ", key);
      return found->second;
    };
    kept.push_back({PlayerSpec::of(said("path"))});
    if (kept.back().spec.kind != PlayerSpec::kRun) continue;
    ConfigSources sources{.env = config.name, .file = file.string()};
    sources.text = said("config");
    FrozenPolicy frozen = choose(said("path"), said("policy"), sources, spec, role, policy);
    frozen.config = *sources.text;
    frozen.weights = file;
    frozen.prefix = concat(k, "/");
    frozen.source = said("source");
    frozen.digest = said("digest");
    kept.back().frozen = std::make_shared<const FrozenPolicy>(std::move(frozen));
  }
  return kept;
}

Policy FrozenPolicy::make(const PolicyBuffers& buffers, int index, int chunk_rows, Device device,
                          Precision precision) const {
  Policy policy(buffers, settings, index, 1, chunk_rows, device, precision);
  load_weights(policy, weights, prefix);
  return policy;
}

}  // namespace wd
