// selection_test.cpp: whether REINFORCE keeps a transition does not depend on the outcome of its actions, so
// its gradient is exact.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/memory.h"
#include "tests/kernels/returns_data.h"

namespace wd {
namespace {

// The reward is 1 per step. Action 0 ends the episode with probability `risk[0]`, action 1 with `risk[1]`;
// both actions are equally likely.
struct Game {
  double risk[2];
  int time_limit;

  // Exact expected return after `made` steps, before the next action is drawn.
  double value(int made) const {
    double value = 0.0;
    const double live = 1.0 - 0.5 * (risk[0] + risk[1]);
    for (int t = time_limit - 1; t >= made; --t) value = 1.0 + live * value;
    return value;
  }
  // Exact E[(1[a = 1] - 1/2) G] of a transition: the expected gradient of log pi(1), weighted by the return.
  double gradient(int made) const {
    return 0.25 * (risk[0] - risk[1]) * (made + 1 < time_limit ? value(made + 1) : 0.0);
  }
};

struct Played {
  RolloutArrays rollout;
  std::vector<int> action, made;  // [T, E]; made: steps of the episode so far
};

// `first_made(e)`: steps that replica e's episode already has when the rollout begins.
template <typename F>
Played play(Draws& draws, const Game& game, int steps, int envs, F first_made) {
  const std::size_t rows = static_cast<std::size_t>(steps) * envs;
  Played played{
      {steps, envs, 1, std::vector<float>(rows), std::vector<float>(rows + envs),
       std::vector<std::uint8_t>(rows + envs, 1), std::vector<std::uint8_t>(rows),
       std::vector<std::uint8_t>(rows), std::vector<std::uint8_t>(rows), std::vector<std::uint8_t>(rows)},
      std::vector<int>(rows),
      std::vector<int>(rows)};
  RolloutArrays& r = played.rollout;
  for (int e = 0; e < envs; ++e) {
    int made = first_made(e);
    bool pending = false;
    for (int t = 0; t < steps; ++t) {
      const std::size_t at = static_cast<std::size_t>(t) * envs + e;
      r.reset_step[at] = pending ? 1 : 0;
      if (pending) {
        pending = false;
        made = 0;
        continue;
      }
      const int action = draws.below(2);
      played.action[at] = action;
      played.made[at] = made++;
      r.reward[at] = 1.0f;
      const bool dies = draws.uniform(0.0f, 1.0f) < game.risk[action];
      r.terminated[at] = dies ? 1 : 0;
      r.truncated[at] = !dies && made == game.time_limit ? 1 : 0;
      pending = dies || made == game.time_limit;
    }
  }
  return played;
}

struct Estimate {
  double mean = 0.0, exact = 0.0, error = 0.0;
  std::int64_t kept = 0;
};

// Mean over the kept transitions, and the exact mean in the same states. Replicas are independent, but their
// transitions are not.
Estimate estimate(const Game& game, const Played& played) {
  ReturnsArgs settings{.method = ReturnMethod::kMonteCarlo, .gamma = 1.0f, .time_limit = game.time_limit};
  const Returns returns = run_returns(HostMemory(), played.rollout, settings);
  Estimate all;
  double squares = 0.0;
  const int envs = played.rollout.num_envs;
  for (int e = 0; e < envs; ++e) {
    double off = 0.0;
    for (int t = 0; t < played.rollout.steps; ++t) {
      const std::size_t at = static_cast<std::size_t>(t) * envs + e;
      if (returns.mask[at] == 0) continue;
      const double found = (played.action[at] - 0.5) * returns.advantage[at],
                   exact = game.gradient(played.made[at]);
      all.mean += found;
      all.exact += exact;
      off += found - exact;
      ++all.kept;
    }
    squares += off * off;
  }
  const auto n = static_cast<double>(all.kept);
  all.mean /= n;
  all.exact /= n;
  all.error = std::sqrt(squares) / n;
  return all;
}

void expect_exact(const Game& game, int steps, int first_made, double least_kept) {
  SCOPED_TRACE(testing::Message() << "T = " << steps << ", time limit " << game.time_limit);
  Draws draws(static_cast<unsigned>(steps));
  const int envs = 3'000'000 / steps;
  // A negative value means a random step, as after many rollouts or with staggered starts.
  const Played played = play(draws, game, steps, envs, [&](int) {
    return first_made >= 0 ? first_made : draws.below(game.time_limit);
  });
  const Estimate found = estimate(game, played);
  EXPECT_GT(static_cast<double>(found.kept), least_kept * steps * envs);
  EXPECT_LT(std::abs(found.mean - found.exact), 4.0 * found.error);
  EXPECT_GT(found.exact, 6.0 * found.error) << "the sign would not show";
  EXPECT_GT(found.mean, 0.0) << "the better action would be unlearned";
}

// Rollouts of the minimum length and longer ones; episodes that start together, and episodes at random steps.
TEST(Selection, ReinforceLearnsTheExactGradient) {
  const Game risky{{0.2, 0.1}, 16}, mild{{0.05, 0.02}, 32};
  for (const int first_made : {0, -1}) {
    for (const int steps : {32, 33, 40, 64, 128}) expect_exact(risky, steps, first_made, 0.45);
    for (const int steps : {64, 100, 256}) expect_exact(mild, steps, first_made, 0.45);
  }
}

// Whether a transition is kept is determined before its action, by the resets before it.
TEST(Selection, NothingThatFollowsATransitionMatters) {
  Draws draws(1);
  const Game game{{0.2, 0.1}, 10};
  const Played played = play(draws, game, 20, 500, [&](int) { return draws.below(10); });
  const ReturnsArgs settings{.method = ReturnMethod::kMonteCarlo, .gamma = 1.0f, .time_limit = 10};
  const Returns returns = run_returns(HostMemory(), played.rollout, settings);
  int kept = 0, dropped = 0;
  for (int e = 0; e < 500; ++e) {
    bool open = false;
    for (int t = 0; t < 20; ++t) {
      const std::size_t at = static_cast<std::size_t>(t) * 500 + e;
      if (played.rollout.reset_step[at] != 0) {
        open = t + 10 >= 20;
        EXPECT_EQ(returns.mask[at], 0);
        continue;
      }
      EXPECT_EQ(returns.mask[at], open ? 0 : 1) << "row " << t << " of replica " << e;
      (open ? dropped : kept) += 1;
    }
  }
  EXPECT_GT(kept, 5000);
  EXPECT_GT(dropped, 2000);
}

}  // namespace
}  // namespace wd
