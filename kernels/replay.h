// replay.h: a ring of the last steps of every replica: appended to after each rollout, and drawn from, all in
// device memory. src/rollout/replay.cpp owns it.
#pragma once

#include "kernels/gather.h"
#include "kernels/who_plays.h"
#include "wd/kernels/clock.h"
#include "wd/queue.h"
#include "wd/random.h"

namespace wd {

// What the ring knows of one agent's step, beside its tensors.
enum ReplayFlag : std::uint8_t {
  kReplayPlayed = 1,  // a transition: the agent was in the game, and the step was no reset
  kReplayOver = 2,    // nothing follows for the agent (kernels/ends.h)
  kReplayEnds = 4,    // the episode ended: the next entry has its last observation, and is a reset step
};

// Entries are steps of one replica, with the rows of all agents. Entry g, counted from the first rollout that
// the ring holds or held, is in slot g mod C. The successor of an entry is the next one, also at the end of
// an episode, so observations are stored once, and the newest n entries have no successor n steps ahead yet.
struct ReplayRing {
  int steps = 0, num_envs = 0, num_agents = 0;  // T of a rollout, E of this rank, A of the policy
  std::int64_t capacity = 0;                    // C: entries per replica, a multiple of T
  std::int64_t loaded = 0;                      // entries of a ring that was filled at once; 0: by rollouts
  std::int64_t n_step = 1;                      // n
  // Of a window, which begins at the entry that is drawn: entries before those that are learned from, and
  // these, L. Of a network without a state, a window is a transition.
  std::int64_t burn_in = 0, length = 1;
  const TrainingTime* time = nullptr;   // before the newest rollout; on the device
  const std::int64_t* begun = nullptr;  // [1]: the iteration whose rollout was the first one here
  std::uint8_t* flags = nullptr;        // [E, C, A] ReplayFlag
  // Prioritized: a binary tree of sums for each replica, [E, 2 leaves]: the root is node 1, the children of
  // node k are 2 k and 2 k + 1, and the priority of slot s is node leaves + s. 0: is not drawn. Or null.
  float* tree = nullptr;
  std::int64_t leaves = 0;   // a power of 2, at least C
  float* highest = nullptr;  // [E]: the highest priority so far, which new entries get
};

inline constexpr int kMaxReplayArrays = 10;

// Copies a rollout to the ring.
struct ReplayAppendArgs {
  ReplayRing ring{};
  int num_arrays = 0;
  GatheredArray arrays[kMaxReplayArrays];          // from [T, E, row] to [E, C, row]
  const std::uint8_t* active = nullptr;            // [T, E, A]
  const std::uint8_t* agent_terminated = nullptr;  // [T, E, A]
  const std::uint8_t* terminated = nullptr;        // [T, E]
  const std::uint8_t* truncated = nullptr;         // [T, E]
  const std::uint8_t* reset_step = nullptr;        // [T, E]
  WhoPlays who{};                                  // [T, E]
};

// Draws windows from those whose entries all have a successor n steps ahead. Every replica gives the same
// number of them; or, if there are more replicas than windows to draw, one of every so many replicas gives
// one. Units are the entries that are learned from, in blocks of so many windows: within a block, all units
// of a step come before those of the next.
struct ReplayDrawArgs {
  ReplayRing ring{};
  std::int64_t units = 0;          // that this rank draws: L of each window
  std::int64_t per_block = 1;      // windows
  std::int64_t per_replica = 1;    // windows of the replicas that give any
  std::int64_t every = 1;          // of so many replicas, one gives windows
  std::int64_t first_replica = 0;  // global id of replica 0
  int draw = 0;                    // counts the draws of an iteration; below 2^16
  RandomKey key{};                 // RandomUse::kReplay
  std::uint32_t policy = 0;        // below 256: every policy draws by itself
  float gamma = 0.99f;             // discount per step
  float reward_scale = 1.0f;       // rewards are multiplied by it
  // All agents of the policy are paid as one: rewards are summed up to the end of the episode, whoever is in
  // the game, and `discount` is 0 where the agent is out of it in the next state.
  bool team = false;
  const float* importance = nullptr;     // [1] on the device: the exponent beta of weights; prioritized
  const float* stored_reward = nullptr;  // [E, C, A]
  std::int64_t* entry = nullptr;         // [units]: e C + slot
  std::int64_t* next = nullptr;          // [units]: the same of the successor from which to bootstrap
  // Of a network with a state, or null: the places of all entries of the windows with their successors,
  // burn_in + L + n of each, in blocks as units are; those of the first ones, [windows]; and of each unit
  // which of its block's entries is the successor.
  std::int64_t* window = nullptr;
  std::int64_t* first = nullptr;
  std::int64_t* successor = nullptr;
  float* reward = nullptr;    // [units, A]: sum of gamma^k r_k up to there
  float* discount = nullptr;  // [units, A]: of the value there; 0 if nothing follows
  // [units, A]: 0 if the row is no transition, and otherwise 1, or prioritized (1 / (N P))^beta, where P is
  // the probability of the entry among the N of its replica that can be drawn (Schaul et al. 2016, sec. 3.4)
  float* weight = nullptr;
  std::uint8_t* mask = nullptr;  // [units, A]: 1 if the row is a transition
};

// Gives drawn windows the priority (mean |error| of the rows that count + floor)^exponent; of several steps,
// with 0.9 of the largest |error| and 0.1 of the mean (Kapturowski et al. 2019, section 2.3).
struct ReplayPriorityArgs {
  ReplayRing ring{};
  std::int64_t units = 0, per_block = 1, per_replica = 1;  // as they were drawn
  const std::int64_t* entry = nullptr;                     // [units]
  const float* error = nullptr;                            // [units, A]
  const std::uint8_t* mask = nullptr;                      // [units, A]
  float exponent = 0.6f, floor = 1e-6f;
};

// All enqueue. replay_admit() gives the windows that the newest rollout has made drawable, at their first
// entries, the highest priority of their replica; those that are not drawable yet have none.
WD_DECLARE_KERNEL(replay_append, ReplayAppendArgs)
void replay_admit(Queue queue, const ReplayRing& ring);
WD_DECLARE_KERNEL(replay_draw, ReplayDrawArgs)
WD_DECLARE_KERNEL(replay_priorities, ReplayPriorityArgs)

WD_CUDA_KERNEL(replay_admit, const ReplayRing& ring)

}  // namespace wd
