// layout.h: the location of a State struct's fields in a replica's memory, found by calling describe().
#pragma once

#include <algorithm>
#include <stdexcept>

#include "wd/detail/advance.h"

namespace wd::detail {

template <StateValue T>
constexpr FieldType field_type() {
  if constexpr (std::is_same_v<T, float>) return FieldType::kFloat;
  if constexpr (std::is_same_v<T, double>) return FieldType::kDouble;
  if constexpr (std::is_same_v<T, std::int32_t>) return FieldType::kInt;
  return FieldType::kUnsigned;
}

// The visitor of State::describe().
class LayoutVisitor {
 public:
  LayoutVisitor(StateLayout& layout, const void* state, std::size_t slots) : layout_(layout), state_(state) {
    layout_.slots.assign(slots, ~0u);
    names_.resize(slots);
    layout_.block_bytes = sizeof(ReplicaHeader);
  }

  template <StateValue T>
  void operator()(const char* name, const PerAgent<T>& field) {
    add<T>(&field, {.name = name, .count = layout_.num_agents, .per_agent = true});
  }
  template <StateValue T>
  void operator()(const char* name, const PerReplica<T>& field) {
    add<T>(&field, {.name = name});
  }
  template <StateValue T>
  void operator()(const char* name, const Scratch<T>& field, int count) {
    add<T>(&field, {.name = name, .count = count, .scratch = true});
  }
  template <StateValue T>
  void operator()(const char* name, const Array<T>& field, int count) {
    add<T>(&field, {.name = name, .count = count, .array = true});
  }

  // Rejects anything else that describe() may name.
  template <typename Other, typename... More>
  void operator()(const char*, const Other&, const More&...) {
    static_assert(
        !std::is_same_v<Other, Other>,
        "describe() names a member of State that is no field, or a count where there is none: members are "
        "wd::PerAgent<T> or wd::PerReplica<T>, field(\"name\", member), and wd::Array<T> or wd::Scratch<T>, "
        "field(\"name\", member, count)");
  }

  void finish() const {
    for (std::size_t k = 0; k < layout_.slots.size(); ++k) {
      if (layout_.slots[k] != ~0u) continue;
      throw std::logic_error(
          "State::describe() leaves out the member of State that is declared " +
          (k == 0 ? std::string("first") : "after '" + names_[k - 1] + "'") +
          "; all members are wd::PerAgent, wd::PerReplica, wd::Array or wd::Scratch, and describe() names "
          "each of them");
    }
  }

 private:
  template <StateValue T>
  void add(const void* member, StateField field) {
    if (field.count < 0) throw std::logic_error("State field " + field.name + ": negative count");
    std::uint32_t& end = field.scratch ? layout_.scratch_bytes : layout_.block_bytes;
    const std::size_t slot = static_cast<std::size_t>(static_cast<const std::byte*>(member) -
                                                      static_cast<const std::byte*>(state_)) /
                             sizeof(void*);
    if (layout_.slots.at(slot) != ~0u)
      throw std::logic_error("State::describe() names one member twice, as '" + names_[slot] + "' and as '" +
                             field.name + "': each member has one field(), with its own name");
    names_[slot] = field.name;
    layout_.slots.at(slot) = end | (field.scratch ? kScratchSlot : 0u);
    const std::uint64_t next =
        end + (std::uint64_t{sizeof(T)} * static_cast<std::uint64_t>(field.count) + 15) / 16 * 16;
    if (next >= kScratchSlot)
      throw std::runtime_error("State field " + field.name + ": a replica is limited to 2 GiB");
    field.type = field_type<T>();
    field.offset = end;
    layout_.fields.push_back(std::move(field));
    end = static_cast<std::uint32_t>(next);
  }

  StateLayout& layout_;
  const void* state_;
  std::vector<std::string> names_;  // by slot
};

template <typename Env>
StateLayout make_layout(const typename Env::Params& params, const Spec& spec) {
  StateLayout layout;
  layout.num_agents = spec.num_agents();
  for (const Role& role : spec.roles) layout.action_width = max(layout.action_width, role.action.width());
  typename Env::State state;
  LayoutVisitor visitor(layout, &state, StateSlots<typename Env::State>::kCount);
  if constexpr (requires { state.describe(visitor, params); }) {
    state.describe(visitor, params);
  } else {
    state.describe(visitor);
  }
  visitor.finish();
  if (std::ranges::any_of(spec.roles, &Role::paid_after_leaving)) {
    layout.counting = layout.block_bytes;
    layout.block_bytes += (static_cast<std::uint32_t>(layout.num_agents) * 4 + 15) / 16 * 16;
  }
  layout.scratch_bytes += (Staging::bytes(layout.num_agents, layout.action_width) + 15) / 16 * 16;
  return layout;
}

template <typename Env>
StateSlots<typename Env::State> slots_of(const StateLayout& layout) {
  StateSlots<typename Env::State> slots;
  for (int k = 0; k < slots.kCount; ++k) slots.offset[k] = layout.slots[static_cast<std::size_t>(k)];
  return slots;
}

inline ReplicaShape shape_of(const StateLayout& layout) {
  const std::uint32_t staging = (Staging::bytes(layout.num_agents, layout.action_width) + 15) / 16 * 16;
  return {layout.block_bytes, layout.scratch_bytes - staging, layout.counting, layout.num_agents,
          layout.action_width};
}

}  // namespace wd::detail
