// outside.cpp: the rows and the header of replicas whose state is elsewhere.
#include "wd/outside.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>

#include "wd/detail/advance.h"
#include "wd/detail/bfloat16.h"
#include "wd/error.h"

namespace wd {
namespace {

ReplicaHeader& header_of(const StateLayout& layout, const StepView& view, int replica) {
  return *reinterpret_cast<ReplicaHeader*>(view.blocks + std::size_t{layout.block_bytes} *
                                                             static_cast<std::size_t>(replica));
}

// Whether each agent is in the game, after the header.
std::int32_t* flags_of(std::byte* block) {
  return reinterpret_cast<std::int32_t*>(block + sizeof(ReplicaHeader));
}

void write_numbers(const float* from, int count, const SeatView& seat, std::int64_t row,
                   ObservationType type) {
  if (type == ObservationType::kFloat32) {
    std::copy_n(from, count, static_cast<float*>(seat.observation) + row * seat.observation_stride);
  } else {
    std::transform(from, from + count,
                   static_cast<std::uint16_t*>(seat.observation) + row * seat.observation_stride,
                   to_bfloat16);
  }
}

}  // namespace

OutsideLayout::OutsideLayout(const Spec& spec) {
  const auto is_possible = [](const StreamSpec& stream) {
    return stream.of == StreamSpec::kReplica && stream.type == StreamSpec::kFloat32;
  };
  const char* const unknown =
      spec.table.features > 0                           ? "a table of observations"
      : !std::ranges::all_of(spec.streams, is_possible) ? "streams of agents or of bytes"
      : !std::ranges::all_of(spec.statistics, &std::string::empty, &Statistic::role) ? "statistics of roles"
      : std::ranges::any_of(spec.roles, &Role::paid_after_leaving) ? "agents that are paid after leaving"
                                                                   : nullptr;
  if (unknown != nullptr) throw UsageError(concat("an environment outside cannot have ", unknown));
  for (const Statistic& statistic : spec.statistics) statistics_.push_back(statistic.field);
  for (const StreamSpec& stream : spec.streams) streams_ += stream.size();
  for (const Role& role : spec.roles) {
    action_width_ = std::max(action_width_, role.action.width());
    for (int i = 0; i < role.count; ++i) {
      const Agent& agent = agents_.emplace_back(observations_, role.observation_size(), actions_,
                                                role.action.width(), role.action_mask ? choices_ : -1,
                                                role.action_mask ? role.action.choices() : 0);
      observations_ += agent.observation_size;
      actions_ += agent.action_width;
      choices_ += agent.mask_width;
    }
  }
}

StateLayout OutsideLayout::state() const {
  StateLayout layout;
  auto bytes = static_cast<std::uint32_t>(sizeof(ReplicaHeader) + agents_.size() * sizeof(std::int32_t));
  for (const std::string& name : statistics_) {
    layout.fields.push_back({.name = name, .offset = bytes});
    bytes += sizeof(float);
  }
  layout.block_bytes = (bytes + 15) / 16 * 16;
  layout.scratch_bytes = 16;
  layout.num_agents = num_agents();
  layout.action_width = action_width_;
  return layout;
}

bool OutsideLayout::resets(const StateLayout& layout, const StepView& view, int replica) {
  return header_of(layout, view, replica).reset_pending != 0;
}

std::uint32_t OutsideLayout::seed(const StateLayout& layout, const StepView& view, int replica) {
  const std::uint32_t id = view.first_replica + static_cast<std::uint32_t>(replica);
  const std::uint32_t episode = header_of(layout, view, replica).episode + 1;
  std::uint32_t start = id;
  if (view.reset == ResetMode::kFixed) start = 0;
  if (view.reset == ResetMode::kPool) {
    const Philox bits = philox({{id, episode, 0, 0}}, view.pool_key.key0, view.pool_key.key1);
    start = static_cast<std::uint32_t>((std::uint64_t{bits.word[0]} * view.pool_size) >> 32);
  }
  const std::uint32_t number = view.reset == ResetMode::kRandom ? episode : 0;
  return philox({{start, number, 0, 0}}, view.start_key.key0, view.start_key.key1).word[0] >> 1;
}

void OutsideLayout::read_actions(const StepView& view, int replica, std::int32_t* words) const {
  for (int r = 0; r < view.num_seats; ++r) {
    const SeatView& seat = view.seats[r];
    const std::int32_t* from = seat.action + std::int64_t{replica} * seat.policy_agents * seat.action_width;
    for (int i = 0; i < seat.count; ++i, from += seat.action_width) {
      const int id = seat.first_agent + i;
      std::int32_t* const to = words + agents_[static_cast<std::size_t>(id)].action;
      for (int k = 0; k < seat.action_width; ++k) {
        if (seat.bounds == nullptr) {
          to[k] = from[k];
        } else {
          float half_widths = 0.0f;
          std::memcpy(&half_widths, from + k, sizeof half_widths);
          const float value = detail::within_bounds(half_widths, seat.bounds[k]);
          std::memcpy(to + k, &value, sizeof value);
        }
      }
    }
  }
}

void OutsideLayout::write(const StateLayout& layout, const StepView& view, int replica,
                          const OutsideStep& step) const {
  ReplicaHeader& header = header_of(layout, view, replica);
  std::int32_t* const flags = flags_of(reinterpret_cast<std::byte*>(&header));
  const int t = step.resets ? 0 : header.t + 1;
  const std::uint32_t episode = header.episode + (step.resets ? 1u : 0u);
  const bool limit = !step.resets && t >= view.time_limit;
  const bool terminated =
      step.terminated || (limit && !step.truncated && view.at_time_limit == AtTimeLimit::kTerminates);
  const bool cut = !step.resets && episode == 0 && header.first_steps > 0 && t >= header.first_steps;
  const bool truncated = !terminated && (step.truncated || limit || cut);
  for (int r = 0; r < view.num_seats; ++r) {
    const SeatView& seat = view.seats[r];
    for (int i = 0; i < seat.count; ++i) {
      const int id = seat.first_agent + i;
      const auto index = static_cast<std::size_t>(id);
      const Agent& agent = agents_[index];
      const std::int64_t row = std::int64_t{replica} * seat.policy_agents + i;
      const bool before = !step.resets && flags[index] != 0, now = step.in_game[index] != 0;
      flags[index] = now ? 1 : 0;
      seat.active[row] = now ? 1 : 0;
      if (seat.restarted != nullptr) seat.restarted[row] = step.resets || (now && !before) ? 1 : 0;
      if (seat.reward != nullptr) {
        const float reward = step.resets ? 0.0f : step.reward[index];
        seat.reward[row] = detail::is_dropped(reward, before) ? 0.0f : reward;
        seat.agent_terminated[row] = before && !now ? 1 : 0;
      }
      write_numbers(step.observation + agent.observation, agent.observation_size, seat,
                    std::int64_t{replica} * seat.observed_agents + i, view.observation_type);
      if (seat.action_mask == nullptr) continue;
      std::uint8_t* const mask = seat.action_mask + row * seat.mask_width;
      std::copy_n(step.action_mask + agent.mask, agent.mask_width, mask);
      // Something is drawn in every row.
      if (!now && std::count(mask, mask + seat.choices, 0) == seat.choices)
        std::fill_n(mask, seat.choices, 1);
    }
  }
  const float* from = step.streams;
  for (int k = 0; k < view.num_streams; ++k) {
    const int bytes = view.stream_bytes[k];
    std::memcpy(static_cast<std::byte*>(view.streams[k]) + std::int64_t{replica} * bytes, from,
                static_cast<std::size_t>(bytes));
    from += bytes / static_cast<int>(sizeof(float));
  }
  if (!statistics_.empty())
    std::copy_n(step.statistics, statistics_.size(), reinterpret_cast<float*>(flags + agents_.size()));
  if ((terminated || truncated) && view.statistic != nullptr)
    std::copy_n(step.statistics, statistics_.size(),
                view.statistic + replica * static_cast<std::ptrdiff_t>(statistics_.size()));
  header.t = t;
  header.episode = episode;
  header.reset_pending = terminated || truncated ? 1 : 0;
  if (view.terminated == nullptr) return;
  view.terminated[replica] = terminated ? 1 : 0;
  view.truncated[replica] = truncated ? 1 : 0;
  view.reset_step[replica] = step.resets ? 1 : 0;
}

void OutsideLayout::in_game(const StateLayout& layout, const std::byte* block, std::uint8_t* flags) {
  const auto* const words = reinterpret_cast<const std::int32_t*>(block + sizeof(ReplicaHeader));
  std::transform(words, words + layout.num_agents, flags,
                 [](std::int32_t flag) { return static_cast<std::uint8_t>(flag != 0); });
}

namespace {

[[noreturn]] void refuse(const Environment& environment) {
  throw std::logic_error(concat("environment ", environment.name(), ": its replicas step themselves"));
}

}  // namespace

void OutsideEnvironment::step(const StateLayout&, const StepView&) const { refuse(*this); }
void OutsideEnvironment::step_in_order(const StateLayout&, const StepView&, PhaseOrder) const {
  refuse(*this);
}
void OutsideEnvironment::step_apart(const StateLayout&, const StepView&, const ApartMemory&) const {
  refuse(*this);
}

namespace {

struct Registered {
  std::string name;
  std::unique_ptr<Environment> (*make)();
};

// In a function: registration may come before this file's own variables are there.
std::deque<Registered>& registered() {
  static std::deque<Registered> all;
  return all;
}

}  // namespace

void register_environment(std::unique_ptr<Environment> (*make)()) {
  registered().push_back({std::string(make()->name()), make});
}

std::vector<EnvironmentRow> detail::registered_environments() {
  std::vector<EnvironmentRow> rows;
  for (const Registered& one : registered()) rows.push_back({one.name.c_str(), one.make, nullptr, ""});
  return rows;
}

}  // namespace wd
