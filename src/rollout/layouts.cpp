// layouts.cpp: what a rollout has of each policy, from the cast and the specification.
#include <algorithm>
#include <numeric>

#include "src/base/join.h"
#include "wd/config.h"
#include "wd/error.h"
#include "wd/trajectory.h"

namespace wd {

RolloutShape RolloutShape::of(const Spec& spec, const Config& config, std::int64_t num_envs, Device device) {
  Cast cast{{}, config.seats};
  const int played = config.env.reset == ResetMode::kPlayed ? 1 : 0;  // who makes the first moves
  for (const PolicySettings& policy : config.policies)
    cast.policies.push_back({.name = policy.name,
                             .state_size = policy.model.state_size(),
                             .carries_noise = policy.algorithm->traits().carries_noise,
                             .reads = policy.model.all_reads(),
                             .opponents = policy.num_opponents() + played});
  return {spec, cast, config.trainer.rollout_steps(), num_envs, device, config.trainer.storage()};
}

RolloutShape RolloutShape::of_roles(const Spec& spec, std::int64_t num_envs, Device device,
                                    ObservationStorage storage) {
  return {spec, Cast::of_roles(spec), 1, num_envs, device, storage};
}

namespace {

void check_seats(const std::vector<Seat>& seats, const Spec& spec) {
  int agent = 0;
  for (const Seat& seat : seats) {
    if (seat.first_agent != agent || seat.count < 1)
      throw UsageError(concat("the seats leave out agent ", agent, ", or name it twice"));
    agent += seat.count;
  }
  if (agent != spec.num_agents())
    throw UsageError(concat("the seats are of ", agent, " agents, and there are ", spec.num_agents()));
  if (seats.size() > kMaxSeats)
    throw UsageError(
        concat("the policies act for ", seats.size(), " runs of agents, and ", kMaxSeats, " are the most"));
}

}  // namespace

bool PolicyLayout::reads_stream(std::size_t k) const { return contains(reads, streams[k].name); }

int PolicyLayout::slot_of(int agent_id) const {
  return static_cast<int>(std::ranges::lower_bound(agent, agent_id) - agent.begin());
}

std::vector<PolicyLayout> policy_layouts(const RolloutShape& shape) {
  const Spec& spec = shape.spec;
  const ObservationStorage storage = shape.storage;
  if (storage.as_table && spec.table.features == 0)
    throw UsageError("observations cannot be a table: the environment declares none (Spec::table)");
  if (storage.as_table && storage.type != ObservationType::kFloat32)
    throw UsageError("a table of observations is float32 only");
  check_seats(shape.cast.seats, spec);
  std::vector<PolicyLayout> layouts(shape.cast.policies.size());
  for (const Seat& seat : shape.cast.seats) {
    const Role& role = spec.roles[static_cast<std::size_t>(seat.role)];
    PolicyLayout& policy = layouts.at(static_cast<std::size_t>(seat.policy));
    if (policy.roles.empty()) {
      policy.observation_size = role.observation_size();
      policy.action_space = role.action;
      policy.has_action_mask = role.action_mask;
      policy.observation_parts = role.observation;
      policy.entities = role.entities;
      policy.choice_features = role.choice_features;
    } else if (policy.observation_size != role.observation_size() || !(policy.action_space == role.action) ||
               policy.has_action_mask != role.action_mask) {
      throw UsageError("roles '" + spec.roles[static_cast<std::size_t>(policy.roles[0])].name + "' and '" +
                       role.name + "' have different spaces and cannot share a policy");
    }
    policy.one_reading = policy.one_reading && policy.entities == role.entities &&
                         policy.choice_features == role.choice_features &&
                         std::ranges::equal(policy.observation_parts, role.observation);
    if (policy.roles.empty() || policy.roles.back() != seat.role) {
      policy.roles.push_back(seat.role);
      policy.first_slot.push_back(policy.num_agents);
    }
    policy.num_agents += seat.count;
    for (int i = 0; i < seat.count; ++i) policy.agent.push_back(seat.first_agent + i);
  }
  for (std::size_t p = 0; p < layouts.size(); ++p) {
    PolicyLayout& policy = layouts[p];
    static_cast<CastPolicy&>(policy) = shape.cast.policies[p];
    policy.all_agents = spec.num_agents();
    policy.num_statistics = static_cast<int>(spec.statistics.size());
    policy.observation_type = storage.type;
    if (storage.as_table) policy.table = spec.table;
    policy.streams = spec.streams;
    if (policy.ids.count == 0) {
      policy.ids.count = policy.num_agents;
      policy.ids.of_slot.resize(policy.agent.size());
      std::iota(policy.ids.of_slot.begin(), policy.ids.of_slot.end(), 0);
    }
    if (policy.roles.empty()) throw UsageError("policy '" + policy.name + "' acts for no agent");
  }
  return layouts;
}

}  // namespace wd
