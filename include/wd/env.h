// env.h: the interface of an environment, and all that its author includes. No torch, no allocation.
//
// An environment is one struct, written once and compiled for host and device (docs/environments.md has a
// walk-through):
//
//   struct Chase {
//     struct Params {
//       int chasers = 4, num_food = 10;
//       void describe(auto&& field) {
//         field("chasers", chasers, {1, 1024}, "..."), field("num_food", num_food, {0, 1024}, "...");
//       }
//     };
//     struct State {
//       wd::PerAgent<float> x;
//       wd::PerReplica<int> caught;
//       wd::Array<float> food_x;  // kept like the others, with as many values as describe() says
//       void describe(auto&& field, const Params& p) {
//         field("x", x), field("caught", caught), field("food_x", food_x, p.num_food);
//       }
//     };
//     // Optional: the number of agents, if parameters do not change it; a GPU's compiler then takes a third.
//     static constexpr int kNumAgents = 2;
//     static wd::Spec spec(const Params&);
//     WD_FN static void reset  (auto& team, const Params&, State&, wd::Random);
//     WD_FN static void step   (auto& team, const Params&, State&, wd::Actions, wd::Random, wd::Outcome&);
//     WD_FN static void observe(auto& team, const Params&, const State&, wd::Observations);
//     // Optional: whether an agent is in the game now (default: true).
//     WD_FN static bool in_game(const Params&, const State&, int agent);
//     // Optional: writes every number of Spec::streams.
//     WD_FN static void streams(auto& team, const Params&, const State&, wd::Streams);
//     // Optional: recomputes fields that follow from others, after these were set from outside.
//     WD_FN static void derive (auto& team, const Params&, State&);
//     // Optional: a player to compare policies with (wdtrain eval --opponent scripted); runs on the host.
//     static void scripted(const Params&, const State&, int agent, wd::ScriptedAction& action);
//   };
//
// `team` runs phases (wd/detail/team.h): each(n, f), each_pair(n, m, f), once(f), sum/min/any(n, f),
// add(target, k), t(), and write_parts(observations, n, m, size, f), write_others(observations, n, m, f). An
// iteration of a phase must not write anything that another iteration of the same phase reads. Code between
// phases runs in every thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "wd/detail/bfloat16.h"
#include "wd/detail/nearest.h"
#include "wd/detail/step_view.h"
#include "wd/error.h"
#include "wd/math.h"
#include "wd/params.h"
#include "wd/random.h"
#include "wd/spec.h"

namespace wd {

// Types that a state may hold. There are no 8-bit types: their stores may alias anything, which prevents
// loops from being vectorized.
template <typename T>
concept StateValue = std::is_same_v<T, float> || std::is_same_v<T, double> ||
                     std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::uint32_t>;

// One value per agent, indexed by the agent's id.
template <typename T>
class PerAgent {
  static_assert(StateValue<T>, "a state holds float, double, std::int32_t or std::uint32_t: flags are int");

 public:
  using Value = T;
  WD_FN T& operator[](int agent) { return data_[agent]; }
  WD_FN const T& operator[](int agent) const { return data_[agent]; }

 private:
  T* data_;
};

// One value per replica. Assign it only inside a phase.
template <typename T>
class PerReplica {
  static_assert(StateValue<T>, "a state holds float, double, std::int32_t or std::uint32_t: flags are int");

 public:
  using Value = T;
  WD_FN operator T() const { return *data_; }
  WD_FN PerReplica& operator=(T value) {
    *data_ = value;
    return *this;
  }
  WD_FN PerReplica& operator+=(T value) {
    *data_ += value;
    return *this;
  }
  WD_FN PerReplica& operator-=(T value) {
    *data_ -= value;
    return *this;
  }
  WD_FN T& get() { return *data_; }
  PerReplica(const PerReplica&) = default;
  PerReplica& operator=(const PerReplica&) = delete;  // it would copy the place: write a = b.get()
  PerReplica() = default;

 private:
  T* data_;
};

// As many values per replica as describe() declares (`field("name", array, count)`), which may be none: food,
// landmarks, the cells of a grid.
template <typename T>
class Array {
  static_assert(StateValue<T>, "a state holds float, double, std::int32_t or std::uint32_t: flags are int");

 public:
  using Value = T;
  WD_FN T& operator[](int i) { return data_[i]; }
  WD_FN const T& operator[](int i) const { return data_[i]; }

 private:
  T* data_;
};

// Working memory of one call, with as many values as describe() declares (`field("name", scratch, count)`).
// It is never saved or compared.
template <typename T>
class Scratch {
  static_assert(StateValue<T>, "a state holds float, double, std::int32_t or std::uint32_t: flags are int");

 public:
  using Value = T;
  WD_FN T& operator[](int i) const { return data_[i]; }

 private:
  T* data_;
};

// The actions of all agents in this step.
class Actions {
 public:
  WD_FN Actions(const std::int32_t* staged, int num_agents) : Actions(staged, staged, num_agents) {}
  // Choices and components (floats' bits) in separate memory, so that wdtrain check sees which of them is
  // read.
  WD_FN Actions(const std::int32_t* discrete, const std::int32_t* continuous, int pitch)
      : discrete_(discrete), continuous_(continuous), pitch_(pitch) {}

  // Index of the choice of a categorical head.
  WD_FN int discrete(int agent, int head) const { return discrete_[head * pitch_ + agent]; }
  // Component k of a continuous action. From a policy or a random player, it is within the bounds if they are
  // finite; from a script, it is unchanged.
  WD_FN float continuous(int agent, int k) const {
    return detail::load_word<float>(continuous_, k * pitch_ + agent);
  }

 private:
  const std::int32_t* discrete_;  // [width, pitch], of which num_agents columns are used
  const std::int32_t* continuous_;
  int pitch_;  // numbers from one head to the next
};

// Where streams() writes: the rows that describe the state as it is now. k counts Spec::streams from 0, and T
// is float for StreamSpec::kFloat32 and std::uint8_t for kUint8.
class Streams {
 public:
  WD_FN Streams(const StepView& view, int replica) : view_(&view), replica_(replica) {}

  // The row of an agent in a stream of agents.
  template <typename T>
  WD_FN T* of_agent(int k, int agent) const {
    const SeatView& seat = seat_of(view_->seats, view_->num_seats, agent);
    return row<T>(seat.streams[k], k,
                  static_cast<std::int64_t>(replica_) * seat.policy_agents + (agent - seat.first_agent));
  }
  // The row of this replica in a stream of replicas.
  template <typename T>
  WD_FN T* of_replica(int k) const {
    return row<T>(view_->streams[k], k, replica_);
  }

 private:
  template <typename T>
  WD_FN T* row(void* rows, int k, std::int64_t index) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(rows) + index * view_->stream_bytes[k]);
  }

  const StepView* view_;
  int replica_;
};

// A scripted player's action for one agent. Heads and components that are not set are 0.
class ScriptedAction {
 public:
  explicit ScriptedAction(std::int32_t* numbers) : numbers_(numbers) {}

  void discrete(int head, int choice) { numbers_[head] = choice; }
  void continuous(int k, float value) { detail::store_word(numbers_, k, value); }

 private:
  std::int32_t* numbers_;  // this agent's
};

// The outcome of a step. Rewards start at 0; in_game() tells which agents have left.
class Outcome {
 public:
  WD_FN Outcome(float* reward, std::int32_t* terminated) : reward_(reward), terminated_(terminated) {}

  WD_FN float& reward(int agent) { return reward_[agent]; }
  // Ends the episode with this step. Call it inside a phase.
  WD_FN void terminate() { *terminated_ = 1; }

 private:
  float* reward_;
  std::int32_t* terminated_;
};

// One entry of an observation row: assign it a float, which is rounded to the type of the buffer.
class ObservationEntry {
 public:
  WD_FN ObservationEntry(void* entry, ObservationType type) : entry_(entry), type_(type) {}
  ObservationEntry(const ObservationEntry&) = default;
  ObservationEntry& operator=(const ObservationEntry&) = delete;

  WD_FN float operator=(float value) const {
    if (type_ == ObservationType::kFloat32) {
      *static_cast<float*>(entry_) = value;
    } else {
      *static_cast<std::uint16_t*>(entry_) = to_bfloat16(value);
    }
    return value;
  }

 private:
  void* entry_;
  ObservationType type_;
};

// An agent's row, or the rest of it from some entry on: used like a write-only float*.
class ObservationRow {
 public:
  WD_FN ObservationRow(void* row, ObservationType type) : row_(row), type_(type) {}

  WD_FN ObservationEntry operator[](std::int64_t i) const { return {(*this + i).row_, type_}; }
  WD_FN ObservationRow operator+(std::int64_t i) const {
    if (type_ == ObservationType::kFloat32) return {static_cast<float*>(row_) + i, type_};
    return {static_cast<std::uint16_t*>(row_) + i, type_};
  }
  WD_FN void* data() const { return row_; }

 private:
  void* row_;
  ObservationType type_;
};

// Where observe() writes: rows of the trajectory buffers themselves, or `staged`, which holds all rows of
// this replica, seat after seat, until they are copied there.
class Observations {
 public:
  WD_FN Observations(const SeatView* seats, int num_seats, int replica, ObservationType type, bool as_table,
                     void* staged = nullptr)
      : seats_(seats),
        staged_(staged),
        num_seats_(num_seats),
        replica_(replica),
        type_(type),
        as_table_(as_table) {}

  WD_FN ObservationType type() const { return type_; }
  // Whether observe() must write rows of Spec::table, of table.columns() entries, instead of what each agent
  // sees: see wd/others.h.
  WD_FN bool as_table() const { return as_table_; }
  // The agent's row, observation_size() entries. It is uninitialized: write all of it.
  WD_FN ObservationRow row(int agent) const {
    const SeatView& seat = seat_of(seats_, num_seats_, agent);
    if (staged_ == nullptr)
      return ObservationRow(seat.observation, type_) +
             slot(seat, seat.observed_agents, agent) * seat.observation_stride;
    int entries = (agent - seat.first_agent) * seat.observation_stride;
    for (const SeatView* before = seats_; before != &seat; ++before)
      entries += before->count * before->observation_stride;
    return ObservationRow(staged_, type_) + entries;
  }
  WD_FN ObservationEntry operator()(int agent, int feature) const { return row(agent)[feature]; }
  // Legal choices of the agent, head after head: 1 legal, 0 not. Null if the role declares no action_mask.
  WD_FN std::uint8_t* action_mask(int agent) const {
    const SeatView& seat = seat_of(seats_, num_seats_, agent);
    return seat.action_mask == nullptr
               ? nullptr
               : seat.action_mask + slot(seat, seat.policy_agents, agent) * seat.mask_width;
  }

 private:
  WD_FN std::int64_t slot(const SeatView& seat, int agents, int agent) const {
    return static_cast<std::int64_t>(replica_) * agents + (agent - seat.first_agent);
  }

  const SeatView* seats_;
  void* staged_;
  int num_seats_;
  int replica_;
  ObservationType type_;
  bool as_table_;
};

}  // namespace wd
