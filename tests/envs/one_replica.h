// one_replica.h: one replica of an environment. Tests set its fields, step it, and inspect all results.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "wd/detail/check_teams.h"
#include "wd/detail/layout.h"
#include "wd/detail/team.h"

namespace wd::testing {

template <typename Env>
class OneReplica {
 public:
  using Params = typename Env::Params;

  explicit OneReplica(const Params& params, std::uint64_t seed = 1)
      : params_(params), spec_(Env::spec(params)) {
    view_.num_replicas = 1;
    view_.add_roles(spec_);
    view_.key = view_.start_key = RandomKey::of(seed, RandomUse::kEnvironment);
    view_.terminated = &terminated_;
    view_.truncated = &truncated_;
    view_.reset_step = &reset_step_;
    for (const Role& role : spec_.roles) {
      const auto agents = static_cast<std::size_t>(role.count);
      const std::size_t stride = (static_cast<std::size_t>(role.observation_size()) + 3) / 4 * 4;
      Rows& rows = rows_.emplace_back();
      rows.actions.resize(agents * static_cast<std::size_t>(role.action.width()));
      rows.rewards.resize(agents);
      rows.left.resize(agents);
      rows.active.resize(agents);
      rows.observations.resize(agents * stride);
      rows.mask.resize(role.action_mask ? agents * static_cast<std::size_t>(role.action.choices()) : 0);
      SeatView& view = view_.seats[rows_.size() - 1];
      view.observation_stride = static_cast<int>(stride);
      view.action = rows.actions.data();
      view.reward = rows.rewards.data();
      view.agent_terminated = rows.left.data();
      view.active = rows.active.data();
      view.observation = rows.observations.data();
      view.action_mask = role.action_mask ? rows.mask.data() : nullptr;
    }
    const ReplicaHeader fresh;
    std::memcpy(block_.data(), &fresh, sizeof(fresh));
    advance(SerialTeam(0));
  }

  // A state field by name, with one value per agent.
  template <typename T>
  std::span<T> field(std::string_view name) {
    const auto found = std::find_if(layout_.fields.begin(), layout_.fields.end(),
                                    [&](const StateField& f) { return f.name == name; });
    return {reinterpret_cast<T*>(block_.data() + found->offset), static_cast<std::size_t>(found->count)};
  }
  // Sets one state field.
  template <typename T>
  void set(std::string_view name, const std::vector<T>& values) {
    std::ranges::copy(values, field<T>(name).begin());
    auto state = detail::bind_state<typename Env::State>(detail::slots_of<Env>(layout_), block_.data(),
                                                         scratch_.data());
    SerialTeam team(0);
    detail::derive<Env>(team, params_, state);
  }

  // One step with actions[agent][head]; omitted actions are zero.
  void step(const std::vector<std::vector<float>>& actions = {}) { step_with(SerialTeam(t() + 1), actions); }
  template <typename Team>
  void step_with(Team team, const std::vector<std::vector<float>>& actions = {}) {
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const auto [role, slot] = place(static_cast<int>(i));
      const ActionSpace& space = spec_.roles[role].action;
      for (std::size_t k = 0; k < actions[i].size(); ++k) {
        const auto choice = static_cast<std::int32_t>(actions[i][k]);
        const void* const bits = space.is_continuous() ? static_cast<const void*>(&actions[i][k]) : &choice;
        std::memcpy(&rows_[role].actions[slot * static_cast<std::size_t>(space.width()) + k], bits, 4);
      }
    }
    advance(team);
  }

  // What the scripted player does, for all agents; choices only.
  std::vector<std::vector<float>> scripted() {
    const auto state = detail::bind_state<typename Env::State>(detail::slots_of<Env>(layout_), block_.data(),
                                                               scratch_.data());
    std::vector<std::vector<float>> actions;
    for (int i = 0; i < spec_.num_agents(); ++i) {
      const auto [role, slot] = place(i);
      std::vector<std::int32_t> numbers(static_cast<std::size_t>(spec_.roles[role].action.width()));
      ScriptedAction action(numbers.data());
      Env::scripted(params_, state, i, action);
      actions.emplace_back(numbers.begin(), numbers.end());
    }
    return actions;
  }

  std::vector<float> observation(int agent) const {
    const auto [role, slot] = place(agent);
    const auto stride = static_cast<std::size_t>(view_.seats[role].observation_stride);
    const float* const row = rows_[role].observations.data() + slot * stride;
    return {row, row + spec_.roles[role].observation_size()};
  }
  // Which choices are legal, of a role that declares action_mask.
  std::vector<int> action_mask(int agent) const {
    const auto [role, slot] = place(agent);
    const auto width = static_cast<std::size_t>(spec_.roles[role].action.choices());
    const std::uint8_t* const mask = rows_[role].mask.data() + slot * width;
    return {mask, mask + width};
  }
  float reward(int agent) const { return rows_[place(agent).role].rewards[place(agent).slot]; }
  bool left(int agent) const { return rows_[place(agent).role].left[place(agent).slot] != 0; }
  bool terminated() const { return terminated_ != 0; }
  bool truncated() const { return truncated_ != 0; }
  int t() const { return reinterpret_cast<const ReplicaHeader*>(block_.data())->t; }
  const std::vector<std::byte>& block() const { return block_; }

 private:
  struct Rows {
    std::vector<std::int32_t> actions;
    std::vector<float> rewards, observations;
    std::vector<std::uint8_t> left, active, mask;
  };
  struct Place {
    std::size_t role, slot;
  };

  Place place(int agent) const {
    std::size_t role = 0;
    while (agent >= spec_.roles[role].count) agent -= spec_.roles[role++].count;
    return {role, static_cast<std::size_t>(agent)};
  }
  template <typename Team>
  void advance(Team team) {
    detail::advance<Env>(team, params_, detail::slots_of<Env>(layout_), view_, detail::shape_of(layout_), 0,
                         block_.data(), scratch_.data());
  }

  Params params_;
  Spec spec_;
  StateLayout layout_ = detail::make_layout<Env>(params_, spec_);
  std::vector<std::byte> block_ = std::vector<std::byte>(layout_.block_bytes);
  std::vector<std::byte> scratch_ = std::vector<std::byte>(layout_.scratch_bytes);
  StepView view_;
  std::vector<Rows> rows_;
  std::uint8_t terminated_ = 0, truncated_ = 0, reset_step_ = 0;
};

// Plays the same random actions with the phases in every order: all states, rows and rewards must be equal to
// the bit.
template <typename Env>
void expect_order_does_not_matter(const typename Env::Params& params, int choices, int heads, int steps) {
  const int agents = Env::spec(params).num_agents();
  for (const PhaseOrder order : {PhaseOrder::kBackward, PhaseOrder::kShuffled}) {
    OneReplica<Env> reference(params), other(params);
    const Random random(RandomKey::of(3, RandomUse::kAction), 0, 0, 0);
    for (int t = 1; t <= steps; ++t) {
      std::vector<std::vector<float>> actions(static_cast<std::size_t>(agents));
      for (int i = 0; i < agents; ++i) {
        for (int k = 0; k < heads; ++k) {
          actions[static_cast<std::size_t>(i)].push_back(
              static_cast<float>(random.integer(i * heads + k, t, choices)));
        }
      }
      reference.step(actions);
      other.step_with(detail::CheckTeam(t, order), actions);
      ASSERT_EQ(reference.block(), other.block()) << "step " << t;
      for (int i = 0; i < agents; ++i) {
        ASSERT_EQ(reference.observation(i), other.observation(i)) << "step " << t << ", agent " << i;
        ASSERT_EQ(reference.reward(i), other.reward(i)) << "step " << t << ", agent " << i;
      }
    }
  }
}

}  // namespace wd::testing
