// team.h: values of a team: what all agents of a policy in one replica are worth together, mixed from the
// values of their actions (value decomposition).
#pragma once

#include "wd/kernels/td.h"

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

// The rows of A agents follow one another.
struct Teams {
  std::int64_t count = 0;
  TeamMixer mixer{};
  Rows<const float> weights{};  // of teams: the mixer's outputs, from the state of their game; empty for sums
  float* q = nullptr;           // [teams, A]: working memory
};

// The team's value is 0 if none of its agents is in the game.
struct TeamValueArgs {
  Teams teams{};
  const float* value = nullptr;           // [teams, A]
  const std::uint8_t* in_game = nullptr;  // [teams, A]
  float* team_value = nullptr;            // [teams]
};

// target = sum of the agents' rewards + discount * (the value of the team's best actions in the next state).
// Rows are those of agents, but targets those of teams. An agent with discount 0 is out of the game in the
// next state, and the team's discount is that of the others.
struct TeamTargetArgs {
  Teams teams{};
  NextValues next{};
};

// The loss of a team with error u = target - value: L_h(u) of TdLossArgs. Rows are those of agents, but
// targets those of teams, of which the first number counts. Agents with weight 0 are out of the game, and a
// team's weight is that of the others. Sums are by TdSum, of teams: those of a team are in the row of its
// first agent, and 0 in the others'. An agent's error is |u|.
struct TeamLossArgs {
  Teams teams{};
  ValueLoss loss{};
  Rows<float> weights_grad{};  // of teams
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
