// frozen.cpp: finds a policy in the folder of a run, and compares its spaces with those of a game.
#include "src/game/frozen.h"

#include <algorithm>

#include "src/base/join.h"
#include "src/config/role_names.h"
#include "wd/checkpoint.h"
#include "wd/error.h"
#include "wd/experiment.h"
#include "wd/weights.h"

namespace wd {
namespace {

namespace fs = std::filesystem;

// "runs/a" and the policy's name, which is empty if the path is a folder itself.
std::pair<std::string, std::string> parts_of(const std::string& path) {
  const std::size_t colon = path.rfind(':');
  if (fs::is_directory(path) || colon == std::string::npos) return {path, ""};
  return {path.substr(0, colon), path.substr(colon + 1)};
}

// The policies that act for agents of the role, by name.
std::vector<std::string> policies_for(const Experiment& run, const std::string& role) {
  const std::vector<std::string> names = run.policy_names();
  std::vector<std::string> found;
  for (const GameSide& side : sides_of(run.environment->spec(), run.config.seats, names))
    if (run.environment->spec().roles[static_cast<std::size_t>(side.role)].name == role)
      found.push_back(names[static_cast<std::size_t>(side.policy)]);
  return found;
}

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

}  // namespace

ConfigSources sources_of_run(const std::string& run) {
  const fs::path folder = run, file = folder / "config.yaml";
  if (!fs::is_directory(folder)) throw UsageError(run + ": there is no such folder of a run or a checkpoint");
  if (is_checkpoint(folder)) {
    open_checkpoint(fs::canonical(folder), CheckpointParts::kWeights);
  } else if (!fs::exists(file)) {
    throw UsageError(run + ": is not a run's folder: it has no config.yaml");
  }
  return {"", file.string(), {}, {}};
}

FrozenPolicy find_frozen(const std::string& path, const std::string& environment, const Spec& spec,
                         const Role& role, const std::string& policy) {
  const auto& [folder, named] = parts_of(path);
  const Experiment run = load_environment(sources_of_run(folder));
  if (run.config.name != environment)
    throw UsageError(concat(path, ": is a run of ", run.config.name, ", and this game is ", environment));
  const Spec other = run.environment->spec();
  const std::vector<std::string> able = policies_for(run, role.name);
  if (able.empty()) throw UsageError(concat(path, ": has no role '", role.name, "'"));
  const std::string wanted = !named.empty() ? named : able.size() == 1 ? able.front() : policy;
  if (!contains(able, wanted))
    throw UsageError(concat(path, ": for '", role.name, "' act ", join(able),
                            named.empty() ? concat(": name one of them, as ", path, ':', able.front())
                                          : concat(", and not '", named, "'")));
  const Role& there = *std::ranges::find(other.roles, role.name, &Role::name);
  if (const std::string reason = difference(there, role); !reason.empty())
    throw UsageError(concat(path, ": '", role.name, "' ", reason, ": the spaces must be the same"));
  FrozenPolicy frozen{path, *std::ranges::find(run.config.policies, wanted, &PolicySettings::name),
                      fs::path(folder) / "weights" / (wanted + ".safetensors")};
  for (const std::string& stream : frozen.settings.model.all_reads())
    if (stream != "observation" && stream != InputPart::kAgentId &&
        std::ranges::find(spec.streams, stream, &StreamSpec::name) == spec.streams.end())
      throw UsageError(concat(path, ": reads the stream '", stream, "', which this game does not have"));
  return frozen;
}

Policy FrozenPolicy::make(const PolicyBuffers& buffers, int index, int chunk_rows, Device device,
                          Precision precision) const {
  Policy policy(buffers, settings, index, 1, chunk_rows, device, precision);
  load_weights(policy, weights);
  return policy;
}

}  // namespace wd
