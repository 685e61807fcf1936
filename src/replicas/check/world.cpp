// world.cpp: poisons memory, makes one step, and searches for faults in what the step wrote.
#include "src/replicas/check/world.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/random_actions.h"
#include "src/replicas/check/watchdog.h"
#include "wd/error.h"

namespace wd {
namespace {

constexpr std::uint32_t kPoison = 0xffffffffu;  // NaN as a float, -1 as an integer
constexpr int kGuard = 4;  // floats behind each observation row, and behind each row of a stream

template <typename T>
void poison_all(std::vector<T>& values) {
  if (!values.empty()) std::memset(values.data(), 0xff, values.size() * sizeof(T));
}

// The finalizer of SplitMix64: seeds that are close give numbers that are not.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

bool is_poison(float value) { return std::bit_cast<std::uint32_t>(value) == kPoison; }

// For example "entry 17 (part 'dx')".
std::string entry_name(const Role& role, int entry) {
  int end = 0;
  for (const ObservationPart& part : role.observation) {
    end += part.size;
    if (entry < end) return concat("entry ", entry, " (part '", part.name, "')");
  }
  return concat("entry ", entry, ", which is past the row's end");
}

std::string agent_name(const Role& role, int replica, int agent) {
  return concat("replica ", replica, ", ", role.name, " ", agent);
}

std::string name_of(PhaseOrder order) {
  switch (order) {
    case PhaseOrder::kForward:
      return "phases forward";
    case PhaseOrder::kBackward:
      return "phases backward";
    case PhaseOrder::kShuffled:
      return "phases shuffled";
    case PhaseOrder::kThreads:
      return "phases on three threads, which must all come to the same phases";
  }
  return "";
}

}  // namespace

int World::stride(const Role& role) { return (role.observation_size() + 3) / 4 * 4 + kGuard; }

int World::stride(const StreamSpec& stream) { return (stream.row_bytes() + 3) / 4 * 4 + 4 * kGuard; }

World::World(const Environment& environment, int num_envs, std::uint64_t seed, std::uint32_t first_replica)
    : environment_(environment),
      spec_(environment.spec()),
      layout_(environment.layout()),
      num_envs_(num_envs),
      seed_(seed),
      first_replica_(first_replica) {
  const auto E = static_cast<std::size_t>(num_envs);
  blocks_.resize(E * layout_.block_bytes);
  poison_all(blocks_);
  for (int e = 0; e < num_envs; ++e) header(e) = ReplicaHeader{};
  for (const Role& role : spec_.roles) {
    const std::size_t agents = E * static_cast<std::size_t>(role.count);
    RoleRows& row = rows.emplace_back();
    row.action.resize(agents * static_cast<std::size_t>(role.action.width()));
    row.reward.resize(agents);
    row.observation.resize(agents * static_cast<std::size_t>(stride(role)));
    row.agent_terminated.resize(agents);
    row.active.resize(agents);
    if (role.action_mask) row.action_mask.resize(agents * static_cast<std::size_t>(role.action.choices()));
    for (std::size_t k = 0; k < spec_.streams.size(); ++k)
      if (spec_.streams[k].of == StreamSpec::kAgent)
        row.streams[k].resize(agents * static_cast<std::size_t>(stride(spec_.streams[k])));
  }
  for (std::size_t k = 0; k < spec_.streams.size(); ++k)
    if (spec_.streams[k].of == StreamSpec::kReplica)
      streams[k].resize(E * static_cast<std::size_t>(stride(spec_.streams[k])));
  for (auto* flags : {&terminated, &truncated, &reset_step}) flags->resize(E);
  dropped.resize(E * static_cast<std::size_t>(layout_.num_agents));
}

void World::draw_actions(std::uint64_t step) {
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Role& role = spec_.roles[r];
    RandomActionsArgs args = random_actions_of(role.action, seed_, static_cast<std::uint32_t>(r), step);
    args.rows = std::int64_t{num_envs_} * role.count;
    args.bounds = role.action.bounds.data();
    args.action_mask = started_ && role.action_mask ? rows[r].action_mask.data() : nullptr;
    args.action = rows[r].action.data();
    random_actions({}, args);
  }
}

StepView World::view() {
  StepView view;
  view.add_roles(spec_);
  view.num_replicas = num_envs_;
  view.first_replica = first_replica_;
  view.key = view.start_key = RandomKey::of(seed_, RandomUse::kEnvironment);
  view.blocks = blocks_.data();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    RoleRows& row = rows[r];
    SeatView& out = view.seats[r];
    out.observation_stride = stride(spec_.roles[r]);
    out.action = row.action.data();
    out.reward = row.reward.data();
    out.agent_terminated = row.agent_terminated.data();
    out.active = row.active.data();
    out.observation = row.observation.data();
    out.action_mask = spec_.roles[r].action_mask ? row.action_mask.data() : nullptr;
    for (std::size_t k = 0; k < spec_.streams.size(); ++k) out.streams[k] = row.streams[k].data();
  }
  view.num_streams = static_cast<int>(spec_.streams.size());
  for (std::size_t k = 0; k < spec_.streams.size(); ++k) {
    view.stream_bytes[k] = stride(spec_.streams[k]);
    view.streams[k] = streams[k].data();
  }
  view.terminated = terminated.data();
  view.truncated = truncated.data();
  view.reset_step = reset_step.data();
  view.dropped = dropped.data();
  return view;
}

void World::poison() {
  for (RoleRows& row : rows) {
    poison_all(row.reward);
    poison_all(row.observation);
    for (auto* flags : {&row.agent_terminated, &row.active, &row.action_mask}) poison_all(*flags);
    for (std::vector<std::uint8_t>& stream : row.streams) poison_all(stream);
  }
  for (std::vector<std::uint8_t>& stream : streams) poison_all(stream);
  for (auto* flags : {&terminated, &truncated, &reset_step}) poison_all(*flags);
}

void World::jump(int step) {
  constexpr int kFirst = 8, kPause = 4, kLast = 3;
  ReplicaHeader& clock = header(0);
  const int room = spec_.time_limit - kLast - kFirst - kPause;
  if (room <= 0 || jumps_ == 2 || step < kFirst + kPause * jumps_ || clock.reset_pending != 0) return;
  const auto any = kFirst + static_cast<int>(mix(seed_) % static_cast<std::uint64_t>(room));
  clock.t = std::max(clock.t, jumps_++ == 0 ? any : spec_.time_limit - kLast);
}

StepView World::begin_step() {
  poison();
  started_ = true;
  return view();
}

void World::step(std::optional<PhaseOrder> order) {
  const StepView view = begin_step();
  const WatchedCall call([order] { return order ? name_of(*order) : "the executor's own order"; });
  if (order) {
    environment_.step_in_order(layout_, view, *order);
  } else {
    environment_.step(layout_, view);
  }
}

std::string World::observation_fault(std::size_t role_index, int replica, int agent) const {
  const Role& role = spec_.roles[role_index];
  const std::size_t slot = static_cast<std::size_t>(replica) * static_cast<std::size_t>(role.count) +
                           static_cast<std::size_t>(agent);
  const float* const row =
      rows[role_index].observation.data() + slot * static_cast<std::size_t>(stride(role));
  for (int k = 0; k < stride(role); ++k) {
    const bool inside = k < role.observation_size();
    if (inside ? std::isfinite(row[k]) : is_poison(row[k])) continue;
    const std::string what = !inside             ? " was written"
                             : is_poison(row[k]) ? " is not written"
                                                 : concat(" is ", row[k]);
    return concat(agent_name(role, replica, agent), ": observation ", entry_name(role, k), what);
  }
  const float reward = rows[role_index].reward[slot];
  return std::isfinite(reward) ? "" : concat(agent_name(role, replica, agent), ": the reward is ", reward);
}

std::string World::mask_fault(std::size_t role_index, int replica, int agent) const {
  const Role& role = spec_.roles[role_index];
  const std::size_t slot = static_cast<std::size_t>(replica) * static_cast<std::size_t>(role.count) +
                           static_cast<std::size_t>(agent);
  const std::uint8_t* legal =
      rows[role_index].action_mask.data() + slot * static_cast<std::size_t>(role.action.choices());
  for (std::size_t h = 0; h < role.action.heads.size(); ++h) {
    bool any = false;
    for (int i = 0; i < role.action.heads[h]; ++i) {
      if (legal[i] > 1)
        return concat(agent_name(role, replica, agent), ": action mask of choice ", i, " in head ", h,
                      " is not written");
      any = any || legal[i] == 1;
    }
    if (!any)
      return concat(agent_name(role, replica, agent), ": the action mask forbids every choice of head ", h);
    legal += role.action.heads[h];
  }
  return {};
}

// Of a game with turns. When the episode is over, both agents may wait.
std::string World::turns_fault(int replica) const {
  int on_turn = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Role& role = spec_.roles[r];
    const auto choices = static_cast<std::size_t>(role.action.choices());
    for (int i = 0; i < role.count; ++i) {
      const auto slot = static_cast<std::size_t>(replica * role.count + i);
      const std::uint8_t* const legal = rows[r].action_mask.data() + slot * choices;
      if (legal[spec_.zero_sum_turns.wait] == 0)
        ++on_turn;
      else if (static_cast<std::size_t>(std::count(legal, legal + choices, 1)) > role.action.heads.size())
        return concat(agent_name(role, replica, i),
                      ": has another choice while it may wait (zero_sum_turns)");
    }
  }
  return on_turn > 1 ? concat("replica ", replica, ": no agent waits (zero_sum_turns)") : std::string();
}

// Any byte may be a number of a uint8 stream, so that one that is not written is not found here.
std::string World::stream_fault(const std::string& who, std::size_t k, const std::uint8_t* row) const {
  const StreamSpec& stream = spec_.streams[k];
  const std::string where = concat(who, ": stream '", stream.name, "', ");
  for (int i = 0; stream.type == StreamSpec::kFloat32 && i < stream.size(); ++i) {
    float number = 0.0f;
    std::memcpy(&number, row + 4 * i, sizeof(number));
    if (!std::isfinite(number))
      return concat(where, "number ", i, is_poison(number) ? " is not written" : concat(" is ", number));
  }
  for (int i = stream.row_bytes(); i < stride(stream); ++i)
    if (row[i] != 0xff) return concat(where, "byte ", i, ", which is past the row's end, was written");
  return {};
}

std::string World::fault() const {
  for (std::size_t k = 0; k < spec_.streams.size(); ++k) {
    const auto bytes = static_cast<std::size_t>(stride(spec_.streams[k]));
    for (std::size_t row = 0; row * bytes < streams[k].size(); ++row)
      if (std::string fault = stream_fault(concat("replica ", row), k, &streams[k][row * bytes]);
          !fault.empty())
        return fault;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const auto count = static_cast<std::size_t>(spec_.roles[r].count);
      for (std::size_t row = 0; row * bytes < rows[r].streams[k].size(); ++row) {
        const std::string who =
            agent_name(spec_.roles[r], static_cast<int>(row / count), static_cast<int>(row % count));
        if (std::string fault = stream_fault(who, k, &rows[r].streams[k][row * bytes]); !fault.empty())
          return fault;
      }
    }
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (int e = 0; e < num_envs_; ++e) {
      for (int i = 0; i < spec_.roles[r].count; ++i) {
        if (std::string fault = observation_fault(r, e, i); !fault.empty()) return fault;
        if (!spec_.roles[r].action_mask) continue;
        if (std::string fault = mask_fault(r, e, i); !fault.empty()) return fault;
      }
    }
  }
  for (int e = 0; e < num_envs_ && spec_.zero_sum_turns.are_declared(); ++e)
    if (std::string fault = turns_fault(e); !fault.empty()) return fault;
  return {};
}

}  // namespace wd
