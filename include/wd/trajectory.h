// trajectory.h: the memory of one rollout: written by environment and policy kernels, read in place by the
// learner.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wd/cast.h"
#include "wd/detail/step_view.h"
#include "wd/device.h"
#include "wd/named_tensor.h"

namespace wd {

struct Activations;
struct Config;

// The agents of one policy: each has a slot in its buffers.
struct PolicyLayout : CastPolicy {
  std::vector<int> roles;       // of its agents, indices into Spec::roles, ascending
  std::vector<int> agent;       // id of each slot's agent, ascending
  std::vector<int> first_slot;  // of the agents of each of `roles`
  int num_agents = 0;           // A
  int all_agents = 0;           // of the environment
  int num_statistics = 0;       // K, of the environment
  int observation_size = 0;     // entries that one agent observes
  bool has_action_mask = false;
  ActionSpace action_space;
  ObservationType observation_type = ObservationType::kFloat32;
  // The parts of the observation, how to read it as lists of things, and what describes the choices. Of roles
  // that differ in this, only the first counts, and `one_reading` is false.
  std::vector<ObservationPart> observation_parts;
  Entities entities;
  ChoiceFeatures choice_features;
  bool one_reading = true;
  ObservationTable table;                // if observations are stored as a table; otherwise without features
  std::vector<StreamSpec> streams = {};  // Spec::streams

  // Whether its networks read this one of `streams`.
  bool reads_stream(std::size_t k) const;
  // The slot of an agent that the policy acts for.
  int slot_of(int agent_id) const;
  bool as_table() const { return table.features > 0; }
  // Entries of a stored observation row, without padding.
  int row_size() const { return as_table() ? table.columns() : observation_size; }
};

// Everything that determines the buffers of a rollout.
struct RolloutShape {
  Spec spec;
  Cast cast;
  std::int64_t steps = 1;     // T
  std::int64_t num_envs = 1;  // E, which may be one worker's share
  Device device = {};
  ObservationStorage storage = {};

  // The rollouts of a training with these settings.
  static RolloutShape of(const Spec& spec, const Config& config, std::int64_t num_envs, Device device = {});
  // Rollouts of one step of Cast::of_roles().
  static RolloutShape of_roles(const Spec& spec, std::int64_t num_envs, Device device = {},
                               ObservationStorage storage = {});
};

// One layout per policy. Throws UsageError if roles of one policy have different spaces, if a policy has no
// agent, if there are more than kMaxSeats seats or they are not all agents in order, or if a table is
// requested that the environment does not declare or that is not float32.
std::vector<PolicyLayout> policy_layouts(const RolloutShape& shape);

// The input of the loss: the transitions of a rollout, [T or T + 1, E, A, ...], or N rows of a batch, [N,
// ...].
struct Transitions {
  // [.., observation_size padded to 16 bytes] float32 or bfloat16; padding is 0. As a table: [T + 1, E, all
  // agents, columns padded] float32, one tensor for all policies.
  at::Tensor observation;
  at::Tensor action_mask;        // [.., choices of all heads] uint8, undefined without masks
  at::Tensor value;              // float32
  at::Tensor action;             // [.., width] int32, or float32 if continuous
  at::Tensor log_prob;           // float32
  at::Tensor advantage, target;  // float32
  // uint8: 1 if the row is a transition (Trajectory::write_mask) that the loss contains. REINFORCE leaves
  // some out.
  at::Tensor mask;
  // For networks with a state: the state before the step, [.., state_size] float32, and whether the agent
  // begins with this step, uint8: an episode begins, or the agent has returned to the game. The state is 0
  // there instead. A batch has only the states before the first steps of its sequences.
  at::Tensor state, restarted;
  // [.., features, padded to 16 bytes] of Network::feature_type(): what the networks computed from
  // observations alone while they acted (Policy::keep_features); undefined: they compute it again.
  at::Tensor features;
  // [.., numbers of a row] float32 or uint8, by Spec::streams; of streams of replicas, A is 1. A batch has
  // those that the policy reads.
  std::array<at::Tensor, kMaxStreams> stream_rows;
};

// The unit of the components of continuous actions that have finite bounds: as the environment takes them, or
// half-widths from the middle, as policies write them.
enum class ActionUnit { kEnvironment, kHalfWidths };  // the latter only of spaces with such bounds

// The buffers of one policy: T steps, E replicas, A agents of its roles; buffer_fields() tells which have a
// row T. All policies hold the same tensors of flags and statistics that belong to replicas, without A.
struct PolicyBuffers : PolicyLayout, Transitions {
  at::Tensor active;                             // [T + 1, E, A] uint8
  at::Tensor reward;                             // [T, E, A] float32
  at::Tensor agent_terminated;                   // [T, E, A] uint8
  at::Tensor terminated, truncated, reset_step;  // [T, E] uint8
  // [T, E, K] float32, written where an episode ends; undefined if the environment has no statistics
  at::Tensor statistics;
  // [T + 1, E] int32: who acts in the episode: 0 is the policy itself, k its k-th opponent, in all roles of
  // the policy but the one that it keeps (kernels/who_plays.h); undefined without opponents. And [A] uint8:
  // which of `roles` each slot's agent has.
  at::Tensor opponent, seat;
  // [T + 1, E, A, components] float32: the noise of actions after the step before, if it is carried
  at::Tensor noise;
  at::Tensor bounds;  // [components, 2] float32: low and high; undefined without components
  ActionUnit unit = ActionUnit::kEnvironment;  // of `action`: Policy::act() and Game::act() set it
  std::shared_ptr<Activations> activations;    // of T * E * A rows, or null: see Policy::keep_activations

  // Observations [rows, observation_size] of steps [begin, end): a view, not a copy. As a table: [E * all
  // agents * steps, columns of the table].
  at::Tensor observation_rows(std::int64_t begin, std::int64_t end) const;
};

// Row order for back-propagation through time: sequences of `length` steps of all agents of a replica, in
// blocks of `per_block` sequences. Within a block, all rows of one step come before those of the next. length
// 0: no sequences, rows in any order.
struct Sequences {
  int length = 0, per_block = 0;
};

// N rows to learn from: views of the trajectory, or a gathered minibatch. The row stride of observations is
// arbitrary.
struct Batch : Transitions {
  const Activations* activations = nullptr;  // of these rows under the current parameters, or null
  Sequences sequences;
};

// One buffer of a rollout. All code that handles every buffer loops over this table: allocation, the
// transition from one rollout to the next, checkpoints, minibatches, replay memories, recordings, the memory
// model and the benchmark.
// There is a field for each stream that an environment may declare.
struct BufferField {
  enum Owner { kPolicy, kCommon };  // every policy has its own, or all policies share one
  enum Use : unsigned { kEnvironment = 1, kInference = 2, kReturns = 4, kLoss = 8 };
  struct Form {
    std::vector<std::int64_t> shape;  // of one step of one replica
    at::ScalarType type = at::kFloat;
    std::int64_t columns = 0;  // of the last dimension, without padding; 0: all
  };

  const char* name;
  Owner owner;
  at::Tensor PolicyBuffers::* tensor;  // null: a stream's
  at::Tensor Transitions::* row;       // the same tensor in a batch, or null if batches do not have it
  // Empty if the policy has no such buffer.
  std::optional<Form> (*form)(const PolicyLayout& policy);
  bool last_row;     // holds T + 1 steps
  bool carried;      // the next rollout begins with its last row, which checkpoints hold
  bool of_sequence;  // a batch has only the rows of its sequences' first steps
  unsigned phases;   // in which every row is read or written once
  bool replayed;     // replay memories remember it
  bool recorded;     // recordings hold it; if replayed, with `last_row`, a batch has it of what follows too
  int stream = -1;   // index of Spec::streams; -1: none, and the members above say all

  // "observation", or the name of the stream.
  std::string name_of(const PolicyLayout& policy) const;
  // The tensor of the buffers, or of a batch of a policy for which in_batch() is true.
  const at::Tensor& of(const PolicyBuffers& buffers) const;
  at::Tensor& of(PolicyBuffers& buffers) const;
  at::Tensor& in(Transitions& batch) const;
  const at::Tensor& in(const Transitions& batch) const;
  // Under which name networks can read it: "observation", or the stream's; empty: they cannot.
  std::string part_of(const PolicyLayout& policy) const;
  bool in_batch(const PolicyLayout& policy) const;
  bool is_replayed(const PolicyLayout& policy) const;
  // Of one step of one replica; 0 if the policy has no such buffer.
  double bytes(const PolicyLayout& policy) const;
};
std::span<const BufferField> buffer_fields();
// Whether all policies share this tensor: a common field, or a table of observations.
bool is_shared(const BufferField& field, const PolicyLayout& policy);

class Trajectory {
 public:
  // Throws UsageError as policy_layouts() does.
  explicit Trajectory(RolloutShape shape);
  // The buffers of a training with these settings: Policy(buffers, config, ...) fits. Throws UsageError as
  // policy_layouts() does, and if policies have opponents, which a Game needs (wd/game.h).
  Trajectory(const Spec& spec, const Config& config, int num_envs, Device device);

  int steps() const { return static_cast<int>(shape_.steps); }  // T
  int length() const { return length_; }  // steps of the current rollout: T, or fewer if it was cut short
  // Ends the rollout before step t: rows from t on are not part of it, except row t of observations.
  void end_at(int t);
  int num_envs() const { return static_cast<int>(shape_.num_envs); }
  const Spec& spec() const { return shape_.spec; }
  int time_limit() const { return shape_.spec.time_limit; }
  std::vector<PolicyBuffers>& policies() { return policies_; }
  const std::vector<PolicyBuffers>& policies() const { return policies_; }
  // The common fields.
  const at::Tensor& terminated() const { return policies_.front().terminated; }
  const at::Tensor& truncated() const { return policies_.front().truncated; }
  const at::Tensor& reset_step() const { return policies_.front().reset_step; }
  const at::Tensor& statistics() const { return policies_.front().statistics; }

  // Pointers for Replicas::step at step t: reads row t, writes row t of outcomes and row t + 1 of
  // observations.
  StepView rows(int t) const;
  // Pointers for the very first reset, which writes row 0.
  StepView first_rows() const;
  // Writes the mask of one policy, by index: 1 for the transitions of the current rollout, 0 in the rows
  // after it. wd::prepare() calls it. Enqueues.
  void write_mask(int policy) const;
  // Views of the last rows, with which the next rollout begins, named "POLICY/FIELD" or
  // "POLICY/stream.STREAM".
  std::vector<NamedTensor> last_rows() const;
  // Copies row 0 back to the last row, before the next carry_over(): undoes a rollout that was begun.
  void carry_back();
  // Copies the last row to row 0 of the next rollout, which has T steps again: the only copy of observations.
  void carry_over();

  // Every allocated tensor, once.
  std::vector<at::Tensor> buffers() const;
  // Calls f(field, tensor) for the buffers of all policies; a tensor that policies share counts as that of
  // the first.
  void each_buffer(const std::function<void(const BufferField&, const at::Tensor&)>& f) const;

 private:
  void copy_row(std::int64_t from, std::int64_t to);

  RolloutShape shape_;
  int length_;
  std::vector<PolicyBuffers> policies_;
};

// Bytes of all buffers of a Trajectory of this shape, on any device. A double, since the shape may exceed
// what can be allocated.
double trajectory_bytes(const RolloutShape& shape);

}  // namespace wd
