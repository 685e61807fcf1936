// memory_needed.cpp: adds up the sizes that follow from the configuration and compares them with the
// machine's limits.
#include "src/autoscale/memory_needed.h"

#include <algorithm>

#include "src/base/host_memory.h"
#include "src/config/role_names.h"
#include "src/nets/network.h"
#include "src/report/format.h"
#include "src/report/plain_error.h"
#include "wd/error.h"
#include "wd/trajectory.h"

namespace wd::scaling {
namespace {

std::string amount(double bytes) {
  return run::format_bytes(static_cast<std::uint64_t>(std::min(bytes, 0x1p62)));
}

}  // namespace

double rollout_bytes(const Config& config, const Environment& environment, double steps, double replicas) {
  return trajectory_bytes(environment.spec(), config.policy_of_role, steps, replicas,
                          config.trainer.storage(), state_sizes(config)) +
         replicas * environment.layout().block_bytes;
}

MemoryNeeded memory_needed(const Config& config, const Environment& environment, int world_size) {
  constexpr double kCopies = 4 * sizeof(float);  // weights, gradients, two moments
  const TrainerSettings& trainer = config.trainer;
  MemoryNeeded needed;
  needed.rollouts = rollout_bytes(config, environment, static_cast<double>(trainer.rollout_steps()),
                                  static_cast<double>(trainer.num_envs) / world_size);
  const auto layouts = policy_layouts(environment.spec(), policy_names(config), config.policy_of_role,
                                      trainer.storage(), state_sizes(config));
  for (std::size_t p = 0; p < layouts.size(); ++p) {
    const ActorCritic nets = make_networks(layouts[p], config.policies[p].model, {}, kFp32);
    for (const Network* const net : {nets.actor.get(), nets.critic.get()})
      if (net != nullptr) needed.networks += kCopies * static_cast<double>(net->num_parameters());
  }
  return needed;
}

void check_memory(const Config& config, const Environment& environment, Device device, int world_size,
                  int local_workers) {
  if (device.is_cuda()) return;
  const std::vector<Allowance> allowances = memory_allowances(machine_memory());
  if (allowances.empty()) return;
  const Allowance room = *std::ranges::min_element(allowances, {}, &Allowance::bytes);
  const MemoryNeeded needed = memory_needed(config, environment, world_size);
  if (local_workers * (needed.rollouts + needed.networks) <= static_cast<double>(room.bytes)) return;
  const TrainerSettings& trainer = config.trainer;
  throw UsageError(concat(
      "not enough memory: ", local_workers > 1 ? concat(local_workers, " workers need") : "training needs",
      " at least ", amount(local_workers * (needed.rollouts + needed.networks)), ", and ",
      run::format_bytes(room.bytes), " can be had (", room.source, "): rollouts of ", trainer.num_envs,
      " replicas x ", run::counted(trainer.rollout_steps(), "step"), " x ",
      run::counted(environment.spec().num_agents(), "agent"), " take ", amount(needed.rollouts * world_size),
      ", networks ", amount(needed.networks), local_workers > 1 ? " a worker" : "", kLessMemory));
}

}  // namespace wd::scaling
