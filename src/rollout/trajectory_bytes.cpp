// trajectory_bytes.cpp: the shapes of trajectory.cpp, multiplied.
#include "src/rollout/trajectory_bytes.h"

#include <algorithm>
#include <numeric>

namespace wd {
namespace {

// Bytes of a row of observations, which begins at a multiple of 16.
double row_bytes(int entries, ObservationType type) { return (entries * bytes_of(type) + 15) / 16 * 16; }

}  // namespace

double trajectory_bytes(const Spec& spec, const std::vector<int>& policy_of_role, double steps,
                        double num_envs, ObservationStorage storage) {
  const double slots = steps * num_envs, slots_and_last = (steps + 1) * num_envs;
  double bytes = slots * (3 + 4 * static_cast<double>(spec.statistics.size()));  // flags of replicas
  if (storage.as_table)
    bytes += slots_and_last * spec.num_agents() * row_bytes(spec.table.columns(), storage.type);
  for (std::size_t r = 0; r < spec.roles.size(); ++r) {
    const Role& role = spec.roles[r];
    const Role& first = spec.roles[static_cast<std::size_t>(
        std::ranges::find(policy_of_role, policy_of_role[r]) - policy_of_role.begin())];
    const double row = storage.as_table ? 0.0 : row_bytes(role.observation_size(), storage.type);
    const double mask =
        first.action_mask ? std::accumulate(role.action.heads.begin(), role.action.heads.end(), 0) : 0;
    // With the last row: observation, mask, active, value. Without: action; log_prob, reward, advantage, target; two flags.
    bytes +=
        role.count * (slots_and_last * (row + mask + 1 + 4) + slots * (4 * role.action.width() + 4 * 4 + 2));
  }
  return bytes;
}

}  // namespace wd
