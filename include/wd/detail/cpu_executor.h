// cpu_executor.h: steps the replicas of one environment on the CPU; instantiated once per environment by
// wd_add_environment().
#pragma once

#include "wd/detail/check_teams.h"
#include "wd/detail/layout.h"
#include "wd/detail/parallel.h"
#include "wd/detail/params_visitor.h"
#include "wd/detail/vectors.h"

namespace wd::detail {

// &WithOptional<Env>::in_game is ambiguous, and so ill-formed, exactly if Env names a member in_game: with
// whatever arguments, template or private. For the other optional functions likewise.
struct OptionalFunctions {
  int in_game, derive, scripted, streams;
};
template <typename Env>
struct WithOptional : Env, OptionalFunctions {};

// Rejects a struct that is not an environment, with one message per rule.
template <typename Env>
constexpr bool check_contract() {
  static_assert(
      requires {
        typename Env::Params;
        typename Env::State;
      }, "an environment needs nested structs Params and State (see wd/env.h)");
  using Params = typename Env::Params;
  using State = typename Env::State;
  static_assert(std::is_trivially_copyable_v<Params>,
                "Params is copied to the device: plain numbers and bools only");
  static_assert(std::is_trivially_copyable_v<State> && sizeof(State) % sizeof(void*) == 0,
                "State holds PerAgent, PerReplica, Array and Scratch fields only");
  static_assert(
      requires(Params p, Fields& f) { p.describe(f); }, "Params needs: void describe(auto&& field)");
  static_assert(
      requires(State s, LayoutVisitor& v, Params p) { s.describe(v); } ||
          requires(State s, LayoutVisitor& v, Params p) { s.describe(v, p); },
      "State needs: void describe(auto&& field), or void describe(auto&& field, const Params&)");
  static_assert(
      requires(const Params& p) {
        { Env::spec(p) } -> std::same_as<Spec>;
      }, "static wd::Spec spec(const Params&) is missing or has other arguments");
  static_assert(
      requires(SerialTeam& t, const Params& p, State& s, Random r) { Env::reset(t, p, s, r); },
      "WD_FN static void reset(auto& team, const Params&, State&, wd::Random) is missing or has other "
      "arguments");
  static_assert(
      requires(SerialTeam& t, const Params& p, State& s, Actions a, Random r, Outcome& o) {
        Env::step(t, p, s, a, r, o);
      },
      "WD_FN static void step(auto& team, const Params&, State&, wd::Actions, wd::Random, wd::Outcome&) is "
      "missing or has other arguments");
  static_assert(
      requires(SerialTeam& t, const Params& p, const State& s, Observations o) { Env::observe(t, p, s, o); },
      "WD_FN static void observe(auto& team, const Params&, const State&, wd::Observations) is missing or "
      "has other arguments");
  static_assert(!std::is_final_v<Env>, "an environment must not be final: remove the word");
  static_assert(
      requires { &WithOptional<Env>::in_game; } ||
          requires(const Params& p, const State& s) { Env::in_game(p, s, 0); },
      "in_game is not public or has other arguments than "
      "WD_FN static bool in_game(const Params&, const State&, int)");
  static_assert(
      requires { &WithOptional<Env>::derive; } ||
          requires(SerialTeam& t, const Params& p, State& s) { Env::derive(t, p, s); },
      "derive is not public or has other arguments than "
      "WD_FN static void derive(auto& team, const Params&, State&)");
  static_assert(
      requires { &WithOptional<Env>::scripted; } ||
          requires(const Params& p, const State& s, ScriptedAction& a) { Env::scripted(p, s, 0, a); },
      "scripted is not public or has other arguments than "
      "static void scripted(const Params&, const State&, int, wd::ScriptedAction&)");
  static_assert(
      requires { &WithOptional<Env>::streams; } ||
          requires(SerialTeam& t, const Params& p, const State& s, Streams r) { Env::streams(t, p, s, r); },
      "streams is not public or has other arguments than "
      "WD_FN static void streams(auto& team, const Params&, const State&, wd::Streams)");
  return true;
}

template <typename Env>
class CpuEnvironment final : public Environment {
  static_assert(check_contract<Env>());

 public:
  explicit CpuEnvironment(const char* name) : name_(name) {}

  std::string_view name() const override { return name_; }
  void describe(Fields& fields) override {
    ParamsVisitor visitor(fields);
    if constexpr (requires { params_.describe(visitor); }) {
      params_.describe(visitor);
    } else {  // describe(wd::Fields&)
      params_.describe(fields);
    }
  }
  Spec spec() const override {
    const Spec spec = Env::spec(params_);
    if (!spec.streams.empty() && requires { &WithOptional<Env>::streams; })  // has none of that name
      throw UsageError("the environment declares streams (Spec::streams) and has no function streams()");
    if constexpr (requires { Env::kNumAgents; })
      if (spec.num_agents() != Env::kNumAgents)
        throw UsageError(concat("the environment has kNumAgents = ", Env::kNumAgents, ", and roles of ",
                                spec.num_agents(), " agents"));
    return spec;
  }
  StateLayout layout() const override { return make_layout<Env>(params_, spec()); }
  const void* params() const override { return &params_; }

  void step(const StateLayout& layout, const StepView& view) const override {
    const auto slots = slots_of<Env>(layout);
    const ReplicaShape shape = shape_of(layout);
    const auto run = [&](std::int64_t begin, std::int64_t end) {
      thread_local std::vector<std::max_align_t> scratch;
      scratch.resize(layout.scratch_bytes / sizeof(std::max_align_t) + 1);
      auto* const memory = reinterpret_cast<std::byte*>(scratch.data());
      with_vectors([&](auto) {
        for (std::int64_t e = begin; e < end; ++e) {
          if (!view.chooses(static_cast<int>(e))) continue;
          std::byte* const block = view.blocks + e * layout.block_bytes;
          SerialTeam team(next_t(*reinterpret_cast<const ReplicaHeader*>(block)));
          advance<Env>(team, params_, slots, view, shape, static_cast<int>(e), block, memory);
        }
      });
    };
    parallel_for(view.num_replicas, grain(view), run);
  }

  void step_in_order(const StateLayout& layout, const StepView& view, PhaseOrder order) const override {
    std::vector<std::max_align_t> scratch(layout.scratch_bytes / sizeof(std::max_align_t) + 1);
    for (int e = 0; e < view.num_replicas; ++e) {
      if (!view.chooses(e)) continue;
      std::byte* const block = view.blocks + static_cast<std::size_t>(e) * layout.block_bytes;
      const int t = next_t(*reinterpret_cast<const ReplicaHeader*>(block));
      // Zeros for one order, NaN for the others, so that scratch memory read before it is written gives
      // different results.
      std::memset(scratch.data(), order == PhaseOrder::kForward ? 0 : 0xff,
                  scratch.size() * sizeof(scratch[0]));
      CheckTeam::play(t, order, [&](CheckTeam& team) {
        advance<Env>(team, params_, slots_of<Env>(layout), view, shape_of(layout), e, block,
                     reinterpret_cast<std::byte*>(scratch.data()));
      });
    }
  }

  void step_apart(const StateLayout& layout, const StepView& view, const ApartMemory& memory) const override {
    typename Env::State state;
    for (std::size_t k = 0; k < memory.fields.size(); ++k)
      std::memcpy(reinterpret_cast<std::byte*>(&state) + k * sizeof(void*), &memory.fields[k], sizeof(void*));
    std::vector<std::int32_t> own(Staging::bytes(layout.num_agents, layout.action_width) / 4);
    Staging staging =
        Staging::at(reinterpret_cast<std::byte*>(own.data()), layout.num_agents, layout.action_width);
    staging.rewards = memory.reward;
    CheckTeam team(next_t(*reinterpret_cast<const ReplicaHeader*>(view.blocks)), PhaseOrder::kForward,
                   &memory);
    advance<Env>(team, params_, state, view, shape_of(layout), staging, 0, view.blocks);
  }

  void derive(const StateLayout& layout, std::byte* block) const override {
    std::vector<std::max_align_t> scratch(layout.scratch_bytes / sizeof(std::max_align_t) + 1);
    auto state = bind_state<typename Env::State>(slots_of<Env>(layout), block,
                                                 reinterpret_cast<std::byte*>(scratch.data()));
    SerialTeam team(0);
    detail::derive<Env>(team, params_, state);
  }

  bool has_script() const override {
    return requires(const typename Env::State& s, ScriptedAction& a) { Env::scripted(params_, s, 0, a); };
  }
  bool scripted(const StateLayout& layout, const std::byte* block, std::int32_t* actions) const override {
    using State = typename Env::State;
    if constexpr (requires(const State& s, ScriptedAction& a) { Env::scripted(params_, s, 0, a); }) {
      std::vector<std::max_align_t> scratch(layout.scratch_bytes / sizeof(std::max_align_t) + 1);
      const State state = bind_state<State>(slots_of<Env>(layout), const_cast<std::byte*>(block),
                                            reinterpret_cast<std::byte*>(scratch.data()));
      std::fill_n(actions, layout.num_agents * layout.action_width, 0);
      for (int i = 0; i < layout.num_agents; ++i) {
        ScriptedAction action(actions + i * layout.action_width);
        Env::scripted(params_, state, i, action);
      }
      return true;
    } else {
      return false;
    }
  }

  void in_game(const StateLayout& layout, const std::byte* block, std::uint8_t* flags) const override {
    std::vector<std::max_align_t> scratch(layout.scratch_bytes / sizeof(std::max_align_t) + 1);
    const auto state = bind_state<typename Env::State>(slots_of<Env>(layout), const_cast<std::byte*>(block),
                                                       reinterpret_cast<std::byte*>(scratch.data()));
    for (int i = 0; i < layout.num_agents; ++i) flags[i] = detail::in_game<Env>(params_, state, i) ? 1 : 0;
  }

 private:
  // Number of replicas worth a thread: a few microseconds of work, estimated by the size of what a step
  // writes.
  static std::int64_t grain(const StepView& view) {
    std::int64_t floats = 64;
    for (int r = 0; r < view.num_seats; ++r)
      floats += std::int64_t{view.seats[r].count} * (view.seats[r].observation_stride + 64);
    return 1 + 32768 / floats;
  }

  const char* name_;
  typename Env::Params params_;
};

}  // namespace wd::detail

// Defines the factory that the generated environment table refers to.
#define WD_DEFINE_CPU_ENVIRONMENT(name, Struct)               \
  namespace wd::detail {                                      \
  std::unique_ptr<Environment> make_environment_##name();     \
  std::unique_ptr<Environment> make_environment_##name() {    \
    return std::make_unique<CpuEnvironment<::Struct>>(#name); \
  }                                                           \
  }
