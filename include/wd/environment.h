// environment.h: an environment as the rest of the program sees it: name, parameters, specification, and
// stepping of replicas.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "wd/detail/step_view.h"
#include "wd/params.h"
#include "wd/spec.h"

namespace wd {

// One state field of one replica. `offset` is relative to the replica's block, for scratch fields to its
// scratch memory.
struct StateField {
  std::string name;
  FieldType type = FieldType::kFloat;
  int count = 1;
  bool per_agent = false;
  bool array = false;    // of objects that are not agents: has an index, whatever the count
  bool scratch = false;  // working memory of one call
  std::uint32_t offset = 0;
};

inline constexpr std::uint32_t kScratchSlot = 0x80000000u;

// The memory of one replica: a persistent block (16-byte header, then fields) and scratch memory (fields,
// then the executor's staging memory).
struct StateLayout {
  std::vector<StateField> fields;
  // Offset of each pointer of the State struct; kScratchSlot marks scratch memory.
  std::vector<std::uint32_t> slots;
  std::uint32_t block_bytes = 0;    // multiple of 16
  std::uint32_t scratch_bytes = 0;  // multiple of 16
  int num_agents = 0;
  int action_width = 0;  // of the widest role
  // Offset in the block of [num_agents] int32: whether the agent counts, whatever in_game() says. 0: there is
  // no role with paid_after_leaving.
  std::uint32_t counting = 0;

  const StateField& field(std::string_view name) const;  // throws UsageError with the nearest name
};

// At the start of every replica's block.
struct ReplicaHeader {
  std::int32_t t = 0;              // step of the episode
  std::uint32_t episode = ~0u;     // counts from 0: the first reset increments it to 0
  std::int32_t reset_pending = 1;  // the next step is a reset
  std::int32_t first_steps = 0;    // length of the first episode if it is cut short, else 0
};

// The order in which phases run when an environment is checked (wdtrain check).
enum class PhaseOrder { kForward, kBackward, kShuffled, kThreads };

struct ApartMemory;  // wd/detail/apart.h
struct EnvironmentRow;

// The CUDA side of one environment. step() enqueues on the stream, and throws std::runtime_error if the
// launch fails.
struct CudaExecutor {
  void (*step)(const void* params, const StateLayout& layout, const StepView& view, void* cuda_stream);
};

class Environment {
 public:
  virtual ~Environment() = default;

  virtual std::string_view name() const = 0;
  virtual void describe(Fields& fields) = 0;  // the parameters, to read or set
  virtual Spec spec() const = 0;              // throws UsageError if parameters contradict each other
  virtual StateLayout layout() const = 0;
  virtual const void* params() const = 0;  // the Params struct, for the CUDA executor

  // Steps replicas [0, num_replicas) on the CPU, in parallel over replicas (detail/parallel.h). For a game
  // that lives elsewhere, derive from OutsideEnvironment (wd/outside.h), which needs no such function. This
  // is what the classes that wd_add_environment() makes, and OutsideLayout::write() of replicas elsewhere, do
  // for each replica e with view.chooses(e):
  //   header: ReplicaHeader at view.blocks + e * layout.block_bytes. If reset_pending: begin an episode,
  //     t = 0, ++episode, and ignore actions. Otherwise play the actions, ++t.
  //   for each seat in view.seats[0 .. num_seats), and its agents i, with row = e * policy_agents + i:
  //     reads  action[row * action_width ..], floats if continuous, in half-widths if `bounds` is not null;
  //     writes observation, row e * observed_agents + i of observation_stride entries; active[row]; if not
  //     null action_mask[row * mask_width ..], restarted[row] (1 where the agent begins), and reward[row]
  //     and agent_terminated[row], which are 0 in a step that resets.
  //   streams of view and of seats that Spec::streams declares.
  //   view.terminated[e], truncated[e], reset_step[e], unless view.terminated is null, and, where an episode
  //     ends, view.statistic[e * num_statistics ..] unless it is null. An episode ends after view.time_limit
  //     steps, or first_steps if it is the first one and that is not 0.
  //   header: reset_pending = 1 where the episode ended, else 0.
  virtual void step(const StateLayout& layout, const StepView& view) const = 0;
  // The same, one replica after another, with the phases in the given order.
  virtual void step_in_order(const StateLayout& layout, const StepView& view, PhaseOrder order) const = 0;
  // Recomputes the derived fields of one block, after other fields were set from outside.
  virtual void derive(const StateLayout& layout, std::byte* block) const = 0;
  // Writes the scripted player's actions for the state of one block, [num_agents, action_width], floats' bits
  // if continuous. Returns false if the environment has no scripted player.
  virtual bool scripted(const StateLayout& layout, const std::byte* block, std::int32_t* actions) const = 0;
  virtual bool has_script() const { return false; }  // whether it has one
  // Writes in_game() of all agents for the state of one block, [num_agents] 0 or 1. By default all are.
  virtual void in_game(const StateLayout& layout, const std::byte*, std::uint8_t* flags) const {
    std::fill_n(flags, layout.num_agents, std::uint8_t{1});
  }
  // Steps one replica whose arrays are in separate memory: `view` has its header in `blocks`, and rows that
  // may have gaps between them.
  virtual void step_apart(const StateLayout& layout, const StepView& view,
                          const ApartMemory& memory) const = 0;

  // The CUDA side; null in a build without CUDA. That of a source file is compiled now: throws UsageError.
  const CudaExecutor* cuda() const { return cuda_ ? cuda_() : nullptr; }
  // Path of the module with this environment on the emulated GPU (wd/emulator/module.h). It may not exist.
  // That of a source file is compiled now: throws UsageError.
  std::string emulated() const { return emulated_ ? emulated_() : ""; }

 private:
  friend std::unique_ptr<Environment> with_sides(std::unique_ptr<Environment> environment,
                                                 std::function<const CudaExecutor*()> cuda,
                                                 std::function<std::string()> emulated);
  std::function<const CudaExecutor*()> cuda_;
  std::function<std::string()> emulated_;
};

// Sets what cuda() and emulated() return.
std::unique_ptr<Environment> with_sides(std::unique_ptr<Environment> environment,
                                        std::function<const CudaExecutor*()> cuda,
                                        std::function<std::string()> emulated);

// One row of the table that CMake generates from wd_add_environment().
struct EnvironmentRow {
  const char* name;
  std::unique_ptr<Environment> (*make)();
  const CudaExecutor* (*cuda)();  // null in a build without CUDA
  const char* config;             // YAML file next to the environment's source, or ""
};

namespace detail {
const std::vector<EnvironmentRow>& environment_table();  // generated
}

// The row with this name. Throws UsageError with the nearest name.
const EnvironmentRow& find_environment(std::string_view name);
// Creates the environment with the defaults of its parameters. By name, it may be a source file, PATH.cu,
// which is compiled (docs/environments.md), or one in Python: gym:ID, pettingzoo:MODULE or MODULE:FUNCTION
// (docs/python.md).
std::unique_ptr<Environment> make_environment(std::string_view name);
std::unique_ptr<Environment> make_environment(const EnvironmentRow& row);

}  // namespace wd
