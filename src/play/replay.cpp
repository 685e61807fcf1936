// replay.cpp: a trajectory of one replica and one step receives the actions.
#include "src/play/replay.h"

#include <ATen/ATen.h>

#include "wd/error.h"
#include "wd/trainer.h"

namespace wd {
namespace {

constexpr int kNoLimit = 1 << 30;

// The columns of a role's agents in its policy's rows.
at::Tensor of_role(const at::Tensor& rows, const PolicyLayout& policy, int role, int count) {
  const auto at = std::ranges::find(policy.roles, role) - policy.roles.begin();
  return rows.narrow(1, policy.first_slot[static_cast<std::size_t>(at)], count);
}

// The agent's number among those of all roles; -1 if there is none.
int agent_of(const Spec& spec, const PolicyLayout& policy, std::int64_t slot) {
  if (slot < 0) return -1;
  for (std::size_t k = 0; k < policy.roles.size(); ++k) {
    const auto role = static_cast<std::size_t>(policy.roles[k]);
    const std::int64_t within = slot - policy.first_slot[k];
    if (within < 0 || within >= spec.roles[role].count) continue;
    std::int64_t first = 0;
    for (std::size_t r = 0; r < role; ++r) first += spec.roles[r].count;
    return static_cast<int>(first + within);
  }
  return -1;
}

}  // namespace

Rollout replay(const Config& config, const Environment& environment, const Evidence& evidence) {
  ReplicasOptions options = replicas_options(config, {});
  options.num_envs = 1;
  options.first_replica = evidence.replica;
  const Spec spec = environment.spec();
  Replicas replicas(environment, options);
  replicas.blocks()[0].copy_(evidence.block);
  Trajectory trajectory(RolloutShape::of_roles(spec, 1, {}, config.trainer.storage()));
  const std::vector<PolicyLayout> layouts = policy_layouts(RolloutShape::of(spec, config, 1));

  const auto give_actions = [&](std::int64_t t) {
    for (std::size_t r = 0; r < spec.roles.size(); ++r) {
      const auto p = static_cast<std::size_t>(config.policy_of_role[r]);
      PolicyBuffers& buffers = trajectory.policies()[r];
      buffers.in_half_widths = evidence.policies[p].in_half_widths;
      buffers.action[0][0].copy_(
          of_role(evidence.policies[p].action, layouts[p], static_cast<int>(r), spec.roles[r].count)[t]);
    }
  };
  const std::vector<std::optional<Policy>> nobody(spec.roles.size());
  std::optional<Recorder> recorder;
  const auto begin_episode = [&] {
    recorder.emplace(kNoLimit).start(replicas, trajectory, nobody);
    recorder->add_frame(replicas, trajectory, true);
  };
  begin_episode();
  const std::int64_t steps = evidence.policies[0].action.size(0);
  for (std::int64_t t = 0; t < steps; ++t) {
    give_actions(t);
    replicas.step(trajectory.rows(0));
    recorder->add_frame(replicas, trajectory, false);
    const bool starts_anew = trajectory.reset_step()[0][0].item<std::uint8_t>() != 0;
    trajectory.carry_over();
    if (starts_anew) begin_episode();
  }
  Rollout rollout =
      rollout_of(environment, concat("iteration ", evidence.iteration, ", replica ", evidence.replica));
  rollout.episodes.push_back(
      {std::vector<std::string>(spec.roles.size(), "as trained"), recorder->episodes()[0]});
  rollout.failure = {evidence.message, agent_of(spec, layouts[evidence.policy], evidence.slot)};
  return rollout;
}

}  // namespace wd
