// team.h: values of a team: what all agents of a policy in one replica are worth together, mixed from the
// values of their actions (value decomposition).
#pragma once

#include "wd/kernels/action_layout.h"
#include "wd/queue.h"

namespace wd {

// How the values q of A agents become that of the team. A value rises with each q, so the actions that are
// best for the agents are best for the team. Agents that are out of the game have q = 0.
//
// units = 0: their sum (VDN, Sunehag et al. 2018, arXiv 1706.05296). Otherwise (QMIX, Rashid et al. 2018,
// arXiv 1803.11485)
//   w2 . elu(q W1 + b1) + b2,
// where W1 [A, units] and w2 [units] are absolute values of numbers that a network computes from the state of
// the game, and b1 [units] and b2 are such numbers: rows of W1, b1, w2, b2, one after another.
struct TeamMixer {
  int agents = 1;  // A
  int units = 0;

  // Numbers that the network computes.
  WD_FN int outputs() const { return units == 0 ? 0 : units * (agents + 2) + 1; }
};

// The rows of A agents follow one another. The team's value is 0 if none of them is in the game.
struct TeamValueArgs {
  std::int64_t teams = 0;
  TeamMixer mixer{};
  const float* weights = nullptr;  // [teams, weights_stride]: the mixer's outputs; null for sums
  std::int64_t weights_stride = 0;
  const float* value = nullptr;           // [teams, A]
  const std::uint8_t* in_game = nullptr;  // [teams, A]
  float* q = nullptr;                     // [teams, A]: working memory
  float* team_value = nullptr;            // [teams]
};

// target = sum of the agents' rewards + discount * (the value of the team's best actions in the next state).
// As in TdTargetArgs, each head of an agent takes the legal choice that is best by `select`. An agent with
// discount 0 is out of the game in the next state, and the team's discount is that of the others.
struct TeamTargetArgs {
  std::int64_t teams = 0;
  TeamMixer mixer{};
  ActionLayout layout{};
  const float* weights = nullptr;  // [teams, weights_stride], of the next state
  std::int64_t weights_stride = 0;
  const float* select = nullptr;  // [teams, A, select_stride]: values of all choices
  std::int64_t select_stride = 0;
  const float* value = nullptr;  // [teams, A, value_stride]: of the target network
  std::int64_t value_stride = 0;
  const std::uint8_t* legal = nullptr;  // [teams, A, choices], of the next state; or null: all
  const float* reward = nullptr;        // [teams, A]
  const float* discount = nullptr;      // [teams, A]
  float* q = nullptr;                   // [teams, A]: working memory
  float* target = nullptr;              // [teams]
};

// The loss of a team with error u = target - value: L_h(u) of TdLossArgs. Sums are by TdSum, of teams: those
// of a team are in the row of its first agent, and 0 in the others'.
struct TeamLossArgs {
  std::int64_t teams = 0;
  TeamMixer mixer{};
  ActionLayout layout{};
  const float* weights = nullptr;  // [teams, weights_stride]
  std::int64_t weights_stride = 0;
  const float* output = nullptr;  // [teams, A, output_stride]: values of all choices
  std::int64_t output_stride = 0;
  const std::int32_t* action = nullptr;  // [teams, A, action_width]
  const float* target = nullptr;         // [teams, target_stride], of which the first number counts
  std::int64_t target_stride = 1;
  // Of the loss, [teams, A]: agents with 0 are out of the game, and a team's is that of the others. Or a
  // mask, if there are no weights.
  const float* weight = nullptr;
  const std::uint8_t* mask = nullptr;
  float huber = 0.0f;
  float* q = nullptr;            // [teams, A]: working memory
  float* output_grad = nullptr;  // [teams, A, grad_stride]: gradient of the weighted sum, not of the mean
  std::int64_t grad_stride = 0;
  float* weights_grad = nullptr;  // [teams, weights_grad_stride]
  std::int64_t weights_grad_stride = 0;
  float* error = nullptr;     // [teams, A]: |u|, for priorities; or null
  float* row_sums = nullptr;  // [kNumTdSums, teams * A]
};

// The rewards of a team, and whether it plays: from those of its agents in a rollout.
struct TeamRewardArgs {
  std::int64_t teams = 0;
  int agents = 1;                      // A
  const float* reward = nullptr;       // [teams, A]
  const std::uint8_t* mask = nullptr;  // [teams, A]: rows that are no transition count for nothing
  float* team_reward = nullptr;        // [teams]: the sum
  std::uint8_t* team_mask = nullptr;   // [teams]: 1 if any agent's is
};

// All enqueue.
WD_DECLARE_KERNEL(team_value, TeamValueArgs)
WD_DECLARE_KERNEL(team_target, TeamTargetArgs)
WD_DECLARE_KERNEL(team_loss, TeamLossArgs)
WD_DECLARE_KERNEL(team_reward, TeamRewardArgs)

}  // namespace wd
