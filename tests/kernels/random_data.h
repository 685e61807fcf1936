// random_data.h: random data in the form that training records, the same on every machine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace wd {

class Draws {
 public:
  explicit Draws(unsigned seed) : engine_(seed) {}

  float uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(engine_() >> 8) / 16777216.0f;
  }
  int below(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  std::vector<float> uniforms(std::int64_t n, float low, float high) {
    std::vector<float> values(static_cast<std::size_t>(n));
    for (float& v : values) v = uniform(low, high);
    return values;
  }

 private:
  std::mt19937 engine_;
};

// Rewards, values and flags of one policy, as the executors define them.
struct RolloutArrays {
  int steps = 0, num_envs = 0, num_agents = 0;
  std::vector<float> reward = {}, value = {};                                  // [T, E, A], [T + 1, E, A]
  std::vector<std::uint8_t> active = {}, agent_terminated = {};                // [T + 1, E, A], [T, E, A]
  std::vector<std::uint8_t> terminated = {}, truncated = {}, reset_step = {};  // [T, E]
  std::vector<std::uint8_t> legal = {};  // [T + 1, E, A, choices]: whose turn it is, in games with turns
  int choices = 0, wait = 0;
};

// Episodes are truncated after `limit` steps, including those that run when the rollout begins.
inline RolloutArrays random_rollout(Draws& draws, int steps, int num_envs, int num_agents,
                                    int limit = 1 << 24) {
  const std::size_t te = std::size_t(steps) * num_envs, row = std::size_t(num_envs) * num_agents;
  RolloutArrays r{steps, num_envs, num_agents, draws.uniforms(std::int64_t(te) * num_agents, -1.0f, 1.0f),
                  draws.uniforms(std::int64_t(te) * num_agents + std::int64_t(row), -2.0f, 2.0f)};
  r.active.assign(te * num_agents + row, 1);
  r.agent_terminated.assign(te * num_agents, 0);
  r.terminated.assign(te, 0);
  r.truncated.assign(te, 0);
  r.reset_step.assign(te, 0);
  for (int e = 0; e < num_envs; ++e) {
    bool pending = draws.one_in(3);
    int made = 0;
    for (int t = 0; t < steps; ++t) {
      const std::size_t at = std::size_t(t) * num_envs + e;
      r.reset_step[at] = pending ? 1 : 0;
      r.terminated[at] = !pending && draws.one_in(9) ? 1 : 0;
      made = pending ? 0 : made + 1;
      r.truncated[at] = !pending && r.terminated[at] == 0 && (draws.one_in(9) || made == limit) ? 1 : 0;
      for (int a = 0; a < num_agents; ++a) {
        const std::size_t i = at * num_agents + a;
        const bool leaves = !pending && r.active[i] != 0 && draws.one_in(7);
        r.agent_terminated[i] = leaves ? 1 : 0;
        r.active[i + row] = pending || (r.active[i] != 0 && !leaves) ? 1 : 0;
        if (pending || r.active[i] == 0) r.reward[i] = 0.0f;
      }
      pending = r.terminated[at] != 0 || r.truncated[at] != 0;
    }
  }
  return r;
}

// Rollouts of a zero-sum game of two agents with turns, of which some last longer than a move, and some moves
// are forced. In one replica of four, another player has the seat of agent 0 or 1, whose rows do not count.
inline RolloutArrays random_turns(Draws& draws, int steps, int num_envs, int limit = 1 << 24) {
  RolloutArrays r = random_rollout(draws, steps, num_envs, 2, limit);
  r.choices = 4;
  r.wait = 2;
  std::fill(r.active.begin(), r.active.end(), 1);
  std::fill(r.agent_terminated.begin(), r.agent_terminated.end(), 0);
  r.legal.assign(r.active.size() * 4, 0);
  std::vector<std::size_t> turn(static_cast<std::size_t>(num_envs));
  for (std::size_t at = 0; at < r.active.size() / 2; ++at) {
    const std::size_t e = at % static_cast<std::size_t>(num_envs);
    turn[e] = draws.one_in(4) ? turn[e] : 1 - turn[e];
    std::uint8_t *const mover = &r.legal[(2 * at + turn[e]) * 4],
                        *waits = &r.legal[(2 * at + 1 - turn[e]) * 4];
    waits[r.wait] = 1;
    mover[3] = 1;
    mover[0] = mover[1] = draws.one_in(3) ? 0 : 1;
    if (e % 4 == 3) r.active[2 * at + e / 4 % 2] = 0;
    if (2 * at < r.reward.size()) r.reward[2 * at + 1] = -r.reward[2 * at];
  }
  return r;
}

}  // namespace wd
