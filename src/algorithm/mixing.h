// mixing.h: what the algorithms of teams share: the mixer at work on the rows of a block.
#pragma once

#include <vector>

#include "wd/kernels/team.h"
#include "wd/policy_pass.h"

namespace wd {

class Policy;

// Declares mixer_dim and hypernet_dims, if the mixer has a network.
void describe_mixer(Fields& field, Mixer& mixer);

// Blocks are whole replicas: the rows of the agents of a team follow one another.
class Mixing {
 public:
  Mixing(const Policy& policy, const Mixer& mixer);

  bool is_on() const { return kind_ != Mixer::kNone; }
  // These, and the memory of a lane that the functions below need.
  std::vector<RowMemory> with_memory(std::vector<RowMemory> memory) const;

  // These enqueue. target(): by the mixer of this model, of the policy's kind, from the state in `rows`.
  void target(Lane& lane, const Model& model, const Batch& rows, std::int64_t begin, std::int64_t end,
              const NextValues& next) const;
  // team_value() of rows whose states are `input`; completes the arguments.
  void value(const Lane& lane, const NetworkInput& input, std::int64_t rows, TeamValueArgs args) const;
  // The loss of a pass of the policy, and the gradients of its networks.
  void learn(Lane& lane, const PolicyPass& pass, const Batch& batch, std::int64_t begin, std::int64_t end,
             const ValueLoss& loss) const;

 private:
  // Computes the weights of the mixer for these states.
  Teams weigh(const Lane& lane, const Network* network, const NetworkInput& input, std::int64_t rows) const;

  const Policy& policy_;
  Mixer::Kind kind_;
  TeamMixer mixer_;
};

}  // namespace wd
