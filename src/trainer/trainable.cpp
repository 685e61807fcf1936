// trainable.cpp: makes one replica and networks with narrow layers, and opens files.
#include "src/trainer/trainable.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "src/base/files.h"
#include "src/config/compatible.h"
#include "src/game/opponents.h"
#include "src/recorded/recording.h"
#include "wd/algorithms.h"
#include "wd/error.h"
#include "wd/trainer.h"
#include "wd/weights.h"

namespace wd {
namespace {

// A refusal names the setting, and where it was written.
template <typename F>
void at_setting(const Config& config, const std::string& path, const std::string& value, const F& f) {
  try {
    f();
  } catch (const UsageError& error) {
    throw UsageError(setting_at(config, path, value) + error.what());
  }
}

void require_replica(const Config& config, const Environment& environment) {
  ReplicasOptions options;
  at_setting(config, "name", config.name, [&] { Replicas(environment, options); });
  if (config.env.reset != ResetMode::kGiven) return;
  options.reset = ResetMode::kGiven;
  options.starts = read_starts(config);
  at_setting(config, "env.starts", config.env.starts, [&] { Replicas(environment, options); });
}

// Rows of one step that are larger are not allocated for a check.
constexpr double kMostBytes = 1 << 30;

// Modules choose their own widths, and a file of weights has those of its network. Others decide nothing.
void narrow(ModelSettings& model) {
  if (model.network || !model.model_ckpt_filepath.empty()) return;
  std::ranges::fill(model.fc_dims, 1);
  std::ranges::fill(model.critic_dims, 1);
}

void require_networks(Config config, const Spec& spec) {
  config.trainer.num_envs = config.trainer.train_batch_size = 1;
  if (config.trainer.precision == kTf32) config.trainer.precision = kFp32;
  for (PolicySettings& policy : config.policies) narrow(policy.model);
  RolloutShape shape = RolloutShape::of(spec, config, 1);
  if (trajectory_bytes(shape) > kMostBytes) return;  // training tells
  const Trajectory trajectory(std::move(shape));
  for (std::size_t p = 0; p < config.policies.size(); ++p) {
    const ModelSettings& model = config.policies[p].model;
    const std::string path = "policy." + config.policies[p].name + ".model.";
    const std::string& file = model.model_ckpt_filepath;
    std::optional<Policy> policy;
    at_setting(config, path + "type", model.network ? model.network->name() : "fully_connected",
               [&] { policy.emplace(trajectory.policies()[p], config, static_cast<int>(p), Device()); });
    if (!file.empty())
      at_setting(config, path + "model_ckpt_filepath", file, [&] { load_weights(*policy, file); });
  }
}

void require_recordings(const Config& config, const Spec& spec) {
  const TrainerSettings& trainer = config.trainer;
  if (trainer.offline.empty()) return;
  const std::vector<PolicyLayout> layouts = policy_layouts(RolloutShape::of(spec, config, 1));
  for (std::size_t p = 0; p < layouts.size(); ++p) {
    const PolicySettings& policy = config.policies[p];
    if (!policy.to_train) continue;
    at_setting(config, "trainer.offline", trainer.offline, [&] {
      const Recording recording(std::filesystem::path(trainer.offline) / policy.name);
      recording.check_headers(config.name, spec, layouts[p]);
      const std::int64_t each = recording.share(trainer.num_envs),
                         n_step = policy.algorithm.is<OffPolicySettings>()
                                      ? policy.algorithm.as<OffPolicySettings>().replay.n_step
                                      : 1;
      if (each <= n_step)
        throw UsageError(concat("policy '", policy.name, "' learns from ", recording.entries(), " steps, ",
                                each, " for each of ", trainer.num_envs, " replicas, and n_step = ", n_step,
                                " needs more: record more steps, or set fewer trainer.num_envs"));
    });
  }
}

void require_players(const Config& config, const Environment& environment) {
  for (const PolicySettings& policy : config.policies)
    if (policy.num_opponents() > 0)
      at_setting(config, "opponents." + policy.name, shown(policy.opponents),
                 [&] { find_opponents(config, environment, policy); });
  if (config.eval.every > 0)
    at_setting(config, "eval.opponent", config.eval.opponent, [&] {
      for (const PlayerSpec& opponent : config.eval.opponents()) find_players(opponent, environment, config);
    });
}

}  // namespace

std::string read_starts(const Config& config) {
  const std::optional<std::string> text = read_whole(config.env.starts, kMaxInput);
  if (!text)
    throw UsageError(concat(setting_at(config, "env.starts", config.env.starts),
                            "cannot be read: ", std::strerror(errno)));
  return *text;
}

void check_shares(const Config& config, int world_size) {
  const std::int64_t envs = config.trainer.num_envs;
  const auto refuse = [&](const std::string& path, std::int64_t number, std::int64_t steps = 1) {
    const std::int64_t unit = world_size * steps, below = number / unit * unit;
    throw UsageError(concat(setting_at(config, path, concat(number)), "must be a multiple of the ",
                            world_size, " workers",
                            steps > 1 ? concat(" x ", steps, " steps of a window") : "", ", as ",
                            below > 0 ? concat(below, " or ") : "", below + unit));
  };
  if (envs % world_size != 0) refuse("trainer.num_envs", envs);
  for (const PolicySettings& policy : config.policies) {
    Usage usage;
    add_algorithm(usage, *policy.algorithm);
    if (policy.to_train && usage.uses.has({Use::kReplay}) && policy.replicas_unit() % world_size != 0)
      refuse("policy." + policy.name + ".batch_size", policy.algorithm->traits().replicas_unit,
             policy.steps_together(1));
  }
}

void require_shares(const Config& config, const Environment& environment, bool gpu, int world_size) {
  require_compatible(config, environment.spec(), gpu);
  check_shares(config, world_size);
}

void require_trainable(const Config& config, const Environment& environment, bool gpu, int world_size) {
  const Spec spec = environment.spec();
  require_shares(config, environment, gpu, world_size);
  require_replica(config, environment);
  require_networks(config, spec);
  require_recordings(config, spec);
  require_players(config, environment);
}

}  // namespace wd
