// trajectory.h: the memory of one rollout: written by environment and policy kernels, read in place by the learner.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "wd/device.h"
#include "wd/environment.h"

namespace wd {

struct Activations;

// The buffers of one policy: T steps, E replicas, A agents of its roles. Rows 0..T where T + 1 is said, else 0..T-1.
struct PolicyBuffers {
  std::string name;
  std::vector<int> roles;       // indices into Spec::roles
  std::vector<int> first_slot;  // slot of each role's first agent among the policy's A
  std::vector<int> agent;       // id of each slot's agent, ascending
  int num_agents = 0;           // A
  int observation_size = 0;     // of a row, whether or not there are rows
  ObservationTable table;       // where observations are one, else without features
  ActionSpace action_space;
  // The actions at hand are a policy's of a bounded box: in half-widths from its middle. Else they are as the environment gets them. Set
  // by who writes them.
  bool in_half_widths = false;

  // [T + 1, E, A, observation_size padded to 16 bytes] float32 or bfloat16; padding is 0. A table: [T + 1, E, all agents, its columns padded],
  // float32, the same tensor for all policies.
  at::Tensor observation;
  at::Tensor action_mask;        // [T + 1, E, A, choices of all heads] uint8, undefined without masks
  at::Tensor active;             // [T + 1, E, A] uint8
  at::Tensor value;              // [T + 1, E, A] float32
  at::Tensor action;             // [T, E, A, width] int32, float32 where continuous
  at::Tensor log_prob;           // [T, E, A] float32
  at::Tensor reward;             // [T, E, A] float32
  at::Tensor agent_terminated;   // [T, E, A] uint8
  at::Tensor advantage, target;  // [T, E, A] float32
  at::Tensor mask;               // [T, E, A] uint8: transitions in the loss
  std::shared_ptr<Activations> activations;  // of T * E * A rows, or null: see Policy::keep_activations

  bool as_table() const { return table.features > 0; }
  int row_size() const { return as_table() ? table.columns() : observation_size; }  // of what there is
  // Observations [rows, observation_size] of steps [begin, end): a view, no copy. A table: [E * all agents * steps, its columns].
  at::Tensor observation_rows(std::int64_t begin, std::int64_t end) const;
};

class Trajectory {
 public:
  // policy_of_role: index of the policy of each role. Roles of one policy must have equal spaces. Throws UsageError otherwise,
  // or when a policy has no role, or a table is wanted of an environment that has none or in bfloat16.
  Trajectory(const Spec& spec, const std::vector<std::string>& policies,
             const std::vector<int>& policy_of_role, int steps, int num_envs, Device device,
             ObservationStorage storage = {});

  int steps() const { return steps_; }    // T
  int length() const { return length_; }  // steps of the rollout at hand: T, or fewer where it was cut short
  // The rollout ends before step t: rows from t on hold nothing, but for row t of what is observed.
  void end_at(int t);
  int num_envs() const { return num_envs_; }
  int time_limit() const { return time_limit_; }  // of the environment
  std::vector<PolicyBuffers>& policies() { return policies_; }
  const std::vector<PolicyBuffers>& policies() const { return policies_; }
  const at::Tensor& terminated() const { return terminated_; }  // [T, E] uint8
  const at::Tensor& truncated() const { return truncated_; }
  const at::Tensor& reset_step() const { return reset_step_; }
  // [T, E, K] float32: the environment's K statistics, written where an episode ends; undefined where it has none.
  const at::Tensor& statistics() const { return statistics_; }

  // Pointers for Replicas::step at step t: reads row t, writes row t of outcomes and row t + 1 of observations.
  StepView rows(int t) const;
  // Pointers for the very first reset, which writes row 0.
  StepView first_rows() const;
  // What the next rollout begins with: views of the last row, by policy.
  std::vector<std::pair<std::string, at::Tensor>> last_rows() const;
  // Row 0 becomes the last row again, before the next carry_over(): undoes a rollout that was begun.
  void carry_back();
  // The last row becomes row 0 of the next rollout, of T steps again: the one copy of observations.
  void carry_over();

  // All that was allocated.
  std::vector<at::Tensor> buffers() const;

 private:
  void copy_row(std::int64_t from, std::int64_t to);

  int steps_, num_envs_, length_, time_limit_;
  ObservationStorage storage_;
  std::vector<Role> roles_;
  std::vector<int> policy_of_role_;
  std::vector<PolicyBuffers> policies_;
  at::Tensor terminated_, truncated_, reset_step_, statistics_;
};

}  // namespace wd
