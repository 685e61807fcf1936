// main.cpp: trains in a game of plain C++ until it is learned, and evaluates the policy.
//
//   host_environment policy.walker.lr=1e-3 trainer.num_envs=32
#include <ATen/ATen.h>
#include <wd/error.h>
#include <wd/experiment.h>
#include <wd/game.h>
#include <wd/outside.h>
#include <wd/trainer.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

// A game that knows nothing of wd: two walkers on ice, each of whom wants to reach its end of a corridor. One
// step in five goes the wrong way.
struct FrozenCorridor {
  static constexpr int kWalkers = 2, kCells = 9;
  std::mt19937 random;
  int cell[kWalkers] = {}, goal[kWalkers] = {};
  void begin(unsigned seed) {
    random.seed(seed);
    for (int w = 0; w < kWalkers; ++w) {
      cell[w] = kCells / 2;
      goal[w] = random() % 2 == 0 ? 0 : kCells - 1;
    }
  }
  void walk(int w, bool right) {
    const bool slips = random() % 5 == 0;
    cell[w] = std::clamp(cell[w] + (right != slips ? 1 : -1), 0, kCells - 1);
  }
  bool has_arrived(int w) const { return cell[w] == goal[w]; }
};

// One replica of it.
class Corridor final : public wd::OutsideReplica {
 public:
  void reset(std::uint32_t seed, wd::OutsideStep& first) override {
    game_.begin(seed);
    write(first);
  }
  void step(const std::int32_t* actions, wd::OutsideStep& step) override {
    for (int w = 0; w < FrozenCorridor::kWalkers; ++w) {
      if (game_.has_arrived(w)) continue;  // it has left the game
      game_.walk(w, actions[w] == 1);
      step.reward[w] = game_.has_arrived(w) ? 1.0f : -0.02f;
    }
    step.terminated = game_.has_arrived(0) && game_.has_arrived(1);
    write(step);
  }

 private:
  void write(wd::OutsideStep& step) const {
    for (int w = 0; w < FrozenCorridor::kWalkers; ++w) {
      step.observation[2 * w] = static_cast<float>(game_.cell[w]) / (FrozenCorridor::kCells - 1);
      step.observation[2 * w + 1] = game_.goal[w] == 0 ? -1.0f : 1.0f;
      step.in_game[w] = game_.has_arrived(w) ? 0 : 1;
    }
  }
  FrozenCorridor game_;
};

class CorridorEnvironment final : public wd::OutsideEnvironment {
 public:
  std::string_view name() const override { return "frozen_corridor"; }
  wd::Spec spec() const override {
    const auto action = wd::ActionSpace::discrete({2}, {"way"});
    return {.roles = {{"walker", FrozenCorridor::kWalkers, {{"cell", 1}, {"goal", 1}}, action}},
            .time_limit = 40};
  }
  std::unique_ptr<wd::OutsideReplicas> open(const wd::OutsideOptions& options) const override {
    return wd::replicas_of_games(spec(), options, [] { return std::make_unique<Corridor>(); });
  }
};

// Plays one episode in each of 200 replicas. Returns the share of episodes in which both arrive in time.
double evaluate(const wd::Experiment& of, wd::Policy& policy) {
  const wd::Spec spec = of.environment->spec();
  wd::RolloutShape shape = wd::RolloutShape::of(spec, of.config, 200, of.device);
  shape.steps = spec.time_limit;
  wd::Game game(*of.environment, {.num_envs = 200, .seed = 12345, .device = of.device}, shape);
  game.add(std::make_unique<wd::PolicyPlayer>(policy, /*greedy=*/true));
  game.begin();
  for (int t = 0; t < shape.steps; ++t) {
    game.act(t, {.step = static_cast<std::uint64_t>(t)});
    game.step(t);
  }
  return game.trajectory().terminated().any(0).to(at::kDouble).mean().item<double>();
}

void train(const std::vector<std::string>& settings) {
  const wd::Experiment experiment = wd::load_experiment(std::make_unique<CorridorEnvironment>(), settings);
  wd::Trainer trainer(experiment.config, *experiment.environment, experiment.device);
  const wd::StepCounts& counts = trainer.counts();
  while (!trainer.return_reached() && counts.env_steps < experiment.config.trainer.total_steps)
    trainer.iterate();
  trainer.read_returns();
  std::printf("%lld steps, mean return %.2f, both arrive in %.0f %% of episodes\n",
              static_cast<long long>(counts.env_steps), trainer.mean_return(0),
              100.0 * evaluate(experiment, trainer.policies()[0]));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> settings = {"trainer.total_steps=500000", "trainer.stop_return=0.7"};
  settings.insert(settings.end(), argv + 1, argv + argc);
  try {
    train(settings);
    return 0;
  } catch (const wd::UsageError& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
