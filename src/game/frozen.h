// frozen.h: who plays beside policies that learn: those of other runs, random play, and scripts.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "wd/config.h"
#include "wd/game.h"
#include "wd/policy.h"

namespace wd {

// A policy of a run or a checkpoint: how it was configured, and where its weights are.
struct FrozenPolicy {
  std::string path;  // as it was named
  PolicySettings settings;
  std::filesystem::path weights;
  std::string prefix = "";  // of names in that file
  // What checkpoints keep of it: the folder that was found, a hash of its weights, and its whole
  // configuration.
  std::string source, digest, config;

  // The policy in these buffers, whose layout has the settings' state size and streams. `index` tells its
  // random numbers from those of other policies. Throws UsageError if the weights cannot be read.
  Policy make(const PolicyBuffers& buffers, int index, int chunk_rows, Device device,
              Precision precision) const;
};

// "runs/a" and "NAME" of "runs/a:NAME"; the second is empty if there is none, or if the whole is a folder.
// Relative paths begin in `base`.
std::pair<std::string, std::string> parts_of_player(const std::string& path,
                                                    const std::filesystem::path& base = {});

// The weights of a policy in the folder of a run or a checkpoint. Throws UsageError if the file is not there
// or damaged.
std::filesystem::path weights_file(const std::filesystem::path& run, const std::string& policy);

// The configuration of a run, or of a checkpoint, whose weights can be read. Throws UsageError.
ConfigSources sources_of_run(const std::string& run);

// A policy of a run or a checkpoint of this environment whose spaces are those of the role. If there are
// several, it is the one of this name, or the one named behind the path: "runs/a:NAME", or with the moving
// average of its weights "runs/a:NAME.average". An environment in Python is not started. Throws UsageError if
// there is none.
FrozenPolicy find_frozen(const std::string& path, const std::string& environment, const Spec& spec,
                         const Role& role, const std::string& policy);

// Throws UsageError that begins with the player's name if a policy was trained without an average.
void require_average(const std::string& player, const PolicySettings& settings);

// A player, with its policy if it is one of another run.
struct FoundPlayer {
  PlayerSpec spec = {};
  std::shared_ptr<const FrozenPolicy> frozen = nullptr;  // kRun
  bool average = false;                                  // kSelf: with the moving average of its weights

  // What results call it: "trained" or "average" for the policy itself, else as spec.text().
  std::string name() const {
    return spec.kind != PlayerSpec::kSelf ? spec.text() : average ? "average" : "trained";
  }
  bool is_policy() const { return spec.kind == PlayerSpec::kSelf || frozen; }
  bool remembers() const;  // something of episodes under way
};

// Throws UsageError if the environment has no script.
void require_script(const Environment& environment);

// The player of this name in the place of a policy that plays this side. Throws UsageError if the environment
// has no script, or as find_frozen() does.
FoundPlayer find_player(const PlayerSpec& player, const Environment& environment, const Config& config,
                        const GameSide& side);
// The same for all sides.
std::vector<FoundPlayer> find_players(const PlayerSpec& player, const Environment& environment,
                                      const Config& config);

// A player for random draws or the script. `index` tells its random numbers from those of others.
std::unique_ptr<Player> player_without_policy(PlayerSpec::Kind kind, Game& game, std::size_t index,
                                              ActionUnit unit);

// Those that config.checkpoint holds for this policy, in its order; none if it is empty. Throws
// std::runtime_error.
std::vector<FoundPlayer> kept_opponents(const Config& config, const Spec& spec, const Role& role,
                                        const std::string& policy);

}  // namespace wd
