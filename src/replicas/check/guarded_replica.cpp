// guarded_replica.cpp: separates the arrays, copies values in and out, and describes addresses in words.
#include "src/replicas/check/guarded_replica.h"

#include <algorithm>
#include <csignal>
#include <cstring>

#include "src/report/format.h"
#include "wd/error.h"

namespace wd {
namespace {

constexpr std::size_t kWord = 4;             // bytes of a float or an action
constexpr std::size_t kMaxRowsApart = 4096;  // each takes two of the kernel's 65530 areas of memory

std::size_t size(int n) { return static_cast<std::size_t>(n); }

std::size_t width_of(const StateField& field) { return field.type == FieldType::kDouble ? 8 : 4; }

const char* name_of(EnvFunction function) {
  switch (function) {
    case EnvFunction::kReset:
      return "reset()";
    case EnvFunction::kDerive:
      return "derive()";
    case EnvFunction::kStep:
      return "step()";
    case EnvFunction::kInGame:
      return "in_game()";
    case EnvFunction::kObserve:
      return "observe()";
    case EnvFunction::kStreams:
      return "streams()";
    case EnvFunction::kNone:
      break;
  }
  return "the environment";
}

// Integer division that rounds toward minus infinity.
std::int64_t divide(std::int64_t a, std::size_t b) {
  const auto n = static_cast<std::int64_t>(b);
  return (a >= 0 ? a : a - n + 1) / n;
}

std::string there_are(int n, const std::string& what) {
  const std::string all = what == "index" ? "indices" : what + "s";
  return n == 1 ? concat("there is ", what, " 0 alone") : concat(all, " are 0 to ", n - 1);
}

}  // namespace

GuardedMemory GuardedReplica::array(std::size_t bytes) const {
  GuardedMemory memory(bytes, edge_ == Edge::kBegin ? 0 : bytes);
  memory.open(0, bytes);
  return memory;
}

// Places each row alone between pages, unless there are too many rows.
GuardedMemory GuardedReplica::rows(std::size_t count, std::size_t bytes, std::size_t& pitch) const {
  if (count > kMaxRowsApart) {
    pitch = bytes;
    return array(count * bytes);
  }
  pitch = whole_pages(bytes) + page_bytes();
  GuardedMemory memory(count * pitch, edge_ == Edge::kBegin ? 0 : bytes);
  for (std::size_t row = 0; row < count; ++row) memory.open(row * pitch, bytes);
  return memory;
}

GuardedReplica::ActionRows GuardedReplica::actions(std::size_t role) const {
  const std::size_t edge = size(first_agent(role) + (edge_ == Edge::kBegin ? 0 : spec_.roles[role].count));
  const std::size_t bytes = size(layout_.action_width) * action_pitch_;
  ActionRows rows{{bytes, edge * kWord}, {bytes, edge * kWord}};
  for (std::size_t r = 0; r < spec_.roles.size(); ++r) {
    const ActionSpace& space = spec_.roles[r].action;
    GuardedMemory& memory = space.is_continuous() ? rows.continuous : rows.discrete;
    for (int k = 0; k < space.width(); ++k)
      memory.open(size(k) * action_pitch_ + size(first_agent(r)) * kWord, size(spec_.roles[r].count) * kWord);
  }
  return rows;
}

int GuardedReplica::first_agent(std::size_t role) const {
  int agent = 0;
  for (std::size_t r = 0; r < role; ++r) agent += spec_.roles[r].count;
  return agent;
}

GuardedReplica::GuardedReplica(const Environment& environment, Edge edge)
    : environment_(environment),
      edge_(edge),
      spec_(environment.spec()),
      layout_(environment.layout()),
      action_pitch_(2 * whole_pages(size(layout_.num_agents) * kWord) + 2 * page_bytes()),
      reward_(array(size(layout_.num_agents) * kWord)) {
  for (const StateField& field : layout_.fields)
    fields_.push_back({field, array(size(field.count) * width_of(field))});
  for (std::size_t r = 0; r < spec_.roles.size(); ++r) {
    const Role& role = spec_.roles[r];
    std::size_t observation = 0, mask = 0;
    GuardedMemory observed = rows(size(role.count), size(role.observation_size()) * kWord, observation);
    GuardedMemory masked = rows(size(role.count), size(role.action.choices()), mask);
    rows_.push_back({std::move(observed), std::move(masked), observation, mask});
    actions_.push_back(actions(r));
  }
  memory_.reward = reinterpret_cast<float*>(reward_.data());
  memory_.action_pitch = static_cast<int>(action_pitch_ / kWord);
  memory_.place = &place_;
  for (const std::uint32_t slot : layout_.slots) {
    const bool scratch = (slot & kScratchSlot) != 0;
    const auto at = [&](const Field& one) {
      return one.field.scratch == scratch && one.field.offset == (slot & ~kScratchSlot);
    };
    // An empty field has the same offset as the field after it.
    const auto full =
        std::ranges::find_if(fields_, [&](const Field& one) { return at(one) && one.field.count > 0; });
    const auto found = full != fields_.end() ? full : std::ranges::find_if(fields_, at);
    memory_.fields.push_back(found->memory.data());
  }
}

// Values that are not written read as NaN; the bytes next to an array differ between the two sides.
void GuardedReplica::load(const World& world, std::size_t role) {
  const int beside = edge_ == Edge::kBegin ? 0x00 : 0xff;
  for (Field& one : fields_) {
    const std::size_t bytes = size(one.field.count) * width_of(one.field);
    one.memory.set(beside);
    std::memset(one.memory.data(), 0xff, bytes);
    if (!one.field.scratch) std::memcpy(one.memory.data(), world.block(0) + one.field.offset, bytes);
  }
  for (GuardedMemory* memory : {&reward_, &actions_[role].discrete, &actions_[role].continuous})
    memory->set(beside);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const Role& one = spec_.roles[r];
    rows_[r].observation.set(beside);
    rows_[r].mask.set(beside);
    for (std::size_t i = 0; i < size(one.count); ++i) {
      std::memset(rows_[r].observation.data() + i * rows_[r].observation_pitch, 0xff,
                  size(one.observation_size()) * kWord);
      std::memset(rows_[r].mask.data() + i * rows_[r].mask_pitch, 0xff, size(one.action.choices()));
    }
    const std::size_t width = size(one.action.width()), first = size(first_agent(r));
    GuardedMemory& actions = one.action.is_continuous() ? actions_[role].continuous : actions_[role].discrete;
    for (std::size_t k = 0; k < width; ++k) {
      for (std::size_t i = 0; i < size(one.count); ++i)
        std::memcpy(actions.data() + k * action_pitch_ + (first + i) * kWord,
                    &world.rows[r].action[i * width + k], kWord);
    }
  }
}

void GuardedReplica::store(World& world) const {
  for (const Field& one : fields_) {
    if (!one.field.scratch)
      std::memcpy(world.block(0) + one.field.offset, one.memory.data(),
                  size(one.field.count) * width_of(one.field));
  }
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const Role& role = spec_.roles[r];
    for (std::size_t i = 0; i < size(role.count); ++i) {
      std::memcpy(world.rows[r].observation.data() + i * size(World::stride(role)),
                  rows_[r].observation.data() + i * rows_[r].observation_pitch,
                  size(role.observation_size()) * kWord);
      if (role.action_mask)
        std::memcpy(world.rows[r].action_mask.data() + i * size(role.action.choices()),
                    rows_[r].mask.data() + i * rows_[r].mask_pitch, size(role.action.choices()));
    }
  }
}

void GuardedReplica::step(World& world, std::size_t role) {
  StepView view = world.begin_step();
  place_ = {};
  load(world, role);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    SeatView& out = view.seats[r];
    out.observation = rows_[r].observation.data();
    out.observation_stride = static_cast<int>(rows_[r].observation_pitch / kWord);
    if (out.action_mask == nullptr) continue;
    out.action_mask = reinterpret_cast<std::uint8_t*>(rows_[r].mask.data());
    out.mask_width = static_cast<int>(rows_[r].mask_pitch);
  }
  memory_.discrete = reinterpret_cast<const std::int32_t*>(actions_[role].discrete.data());
  memory_.continuous = reinterpret_cast<const std::int32_t*>(actions_[role].continuous.data());
  environment_.step_apart(layout_, view, memory_);
  store(world);
  place_ = {};
}

std::string GuardedReplica::agent_name(std::int64_t agent) const {
  for (std::size_t r = 0; r < spec_.roles.size(); ++r) {
    const std::int64_t i = agent - first_agent(r);
    if (i >= 0 && i < spec_.roles[r].count) return concat(spec_.roles[r].name, " ", i);
  }
  return concat("agent ", agent);
}

std::string GuardedReplica::place() const {
  std::string text = name_of(place_.function);
  if (place_.phase > 0) text += concat(", phase ", place_.phase);
  if (place_.i >= 0) text += concat(", i = ", place_.i);
  if (place_.j >= 0) text += concat(", j = ", place_.j);
  return text;
}

std::string GuardedReplica::field_meaning(const Field& one, const void* address) const {
  const std::int64_t index = divide(one.memory.offset_of(address), width_of(one.field));
  return concat("state field '", one.field.name, "' is used at ", one.field.per_agent ? "agent " : "index ",
                index, ": ",
                one.field.count == 0 ? "it is empty"
                                     : there_are(one.field.count, one.field.per_agent ? "agent" : "index"));
}

std::string GuardedReplica::row_meaning(const Role& role, const char* what, std::size_t pitch,
                                        std::size_t width, int entries, std::int64_t offset) const {
  // Half of a gap belongs to the row before it, and half to the row behind it.
  const auto gap = static_cast<std::int64_t>(pitch - size(entries) * width);
  const std::int64_t i = divide(offset + gap / 2, pitch);
  const std::int64_t entry = divide(offset - i * static_cast<std::int64_t>(pitch), width);
  if (i < 0 || i >= role.count)
    return concat(what, "s of ", role.name, " ", i, " are used: ", there_are(role.count, role.name.c_str()));
  return concat(what, " ", entry, " of ", role.name, " ", i, " is used: ", there_are(entries, what));
}

std::string GuardedReplica::action_meaning(const char* call, bool continuous, std::int64_t offset) const {
  const std::int64_t head = divide(offset + static_cast<std::int64_t>(action_pitch_ / 2), action_pitch_);
  const std::int64_t agent = divide(offset - head * static_cast<std::int64_t>(action_pitch_), kWord);
  const std::string what = concat("actions.", call, "(", agent, ", ", head, ") is read: ");
  for (std::size_t r = 0; r < spec_.roles.size(); ++r) {
    const Role& role = spec_.roles[r];
    if (agent < first_agent(r) || agent >= first_agent(r) + role.count) continue;
    if (role.action.is_continuous() != continuous)
      return concat(what, "the actions of ", role.name, "s are ", continuous ? "discrete" : "continuous");
    return concat(what, report::counted(role.action.width(), continuous ? "component" : "head"),
                  " is all that a ", role.name, " has");
  }
  return concat(what, there_are(layout_.num_agents, "agent"));
}

std::string GuardedReplica::meaning(const MemoryFault& fault) const {
  const std::string by = concat(", by ", place());
  if (fault.signal == SIGFPE) return concat("an integer is divided by 0", by);
  for (const Field& one : fields_)
    if (one.memory.holds(fault.address)) return field_meaning(one, fault.address) + by;
  if (reward_.holds(fault.address)) {
    return concat("outcome.reward(", divide(reward_.offset_of(fault.address), kWord),
                  ") is used: ", there_are(layout_.num_agents, "agent"), by);
  }
  for (const ActionRows& rows : actions_) {
    if (rows.discrete.holds(fault.address))
      return action_meaning("discrete", false, rows.discrete.offset_of(fault.address)) + by;
    if (rows.continuous.holds(fault.address))
      return action_meaning("continuous", true, rows.continuous.offset_of(fault.address)) + by;
  }
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const Role& role = spec_.roles[r];
    if (rows_[r].observation.holds(fault.address))
      return row_meaning(role, "observation value", rows_[r].observation_pitch, kWord,
                         role.observation_size(), rows_[r].observation.offset_of(fault.address)) +
             by;
    if (rows_[r].mask.holds(fault.address))
      return row_meaning(role, "action mask value", rows_[r].mask_pitch, 1, role.action.choices(),
                         rows_[r].mask.offset_of(fault.address)) +
             by;
  }
  const bool null = reinterpret_cast<std::uintptr_t>(fault.address) < page_bytes();
  const auto unmasked = std::ranges::find_if(spec_.roles, [](const Role& role) { return !role.action_mask; });
  if (null && place_.function == EnvFunction::kObserve && unmasked != spec_.roles.end()) {
    return concat("a null pointer is used: obs.action_mask() of a role that declares no action_mask, as ",
                  unmasked->name, ", is null", by);
  }
  return concat(null ? "a null pointer is used" : "memory is used that does not belong to the environment",
                by);
}

}  // namespace wd
