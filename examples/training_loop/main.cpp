// main.cpp: a complete training loop on the public API.
//
//   training_loop cartpole policy.shared.lr=1e-3
//
// wd::Trainer does the same, with checkpoints, metrics, several workers and CUDA graphs. Write a loop like
// this one to change what an iteration does: another order of phases, your own rewards, a curriculum.
#include <ATen/ATen.h>
#include <wd/algorithm.h>
#include <wd/error.h>
#include <wd/experiment.h>
#include <wd/game.h>
#include <wd/trainer.h>

#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace {

// Tracks the episodes of every replica across rollouts.
class Episodes {
 public:
  explicit Episodes(int num_envs) : running_(at::zeros({num_envs})) {}

  void follow(const wd::Trajectory& trajectory, const wd::PolicyBuffers& buffers) {
    const at::Tensor rewards = buffers.reward.mean(2).cpu();  // [T, E]: mean over the policy's agents
    const at::Tensor ended =
        at::bitwise_or(trajectory.terminated(), trajectory.truncated()).cpu().to(at::kBool);
    const at::Tensor reset = trajectory.reset_step().cpu().to(at::kBool);
    for (int t = 0; t < trajectory.steps(); ++t) {
      running_ = (running_ + rewards[t]).masked_fill(reset[t], 0.0);
      const at::Tensor whole = ended[t].logical_and(reset[t].logical_not());
      sum_ += running_.masked_select(whole).sum().item<double>();
      count_ += static_cast<double>(whole.sum().item<std::int64_t>());
    }
  }
  // Mean return of the episodes that ended since the last call; NaN if none did.
  double take_mean() { return std::exchange(sum_, 0.0) / std::exchange(count_, 0.0); }

 private:
  at::Tensor running_;  // [E]
  double sum_ = 0.0, count_ = 0.0;
};

int train(const std::string& env, const std::vector<std::string>& settings) {
  // An environment and its configuration: configs/ENV.yaml, overridden by `settings`.
  const wd::Experiment experiment = wd::load_experiment(env, settings);
  const wd::Config& config = experiment.config;
  const wd::Device device = experiment.device;
  const auto seed = static_cast<std::uint64_t>(config.trainer.seed);
  const int steps = static_cast<int>(config.trainer.rollout_steps());

  // Replicas, and the buffers that they and the players write to.
  const wd::ReplicasOptions replicas = wd::replicas_options(config, device);
  wd::Game game(*experiment.environment, replicas,
                wd::RolloutShape::of(experiment.environment->spec(), config, replicas.num_envs, device));
  wd::Trajectory& trajectory = game.trajectory();
  std::vector<wd::PolicyBuffers>& buffers = trajectory.policies();

  // A network for each policy, and a learner that trains it.
  std::vector<wd::Policy> policies;
  policies.reserve(config.policies.size());
  for (std::size_t p = 0; p < config.policies.size(); ++p)
    policies.emplace_back(buffers[p], config, static_cast<int>(p), device);
  std::vector<wd::Learner> learners;
  for (std::size_t p = 0; p < policies.size(); ++p)
    learners.emplace_back(policies, trajectory, static_cast<int>(p), config.policies[p], seed);

  // Who acts: each policy, and the opponents that the configuration lists.
  const std::vector<wd::PolicyPlayer*> players =
      wd::add_players(game, policies, config, *experiment.environment);

  wd::TrainingClock clock(device);  // drives schedules and random numbers
  Episodes episodes(replicas.num_envs);
  const std::int64_t iterations = config.trainer.total_steps / config.trainer.train_batch_size;
  for (std::int64_t iteration = 1; iteration <= iterations; ++iteration) {
    // Rollout: every player acts on row t; the environments write rewards to row t and observations to row
    // t + 1. Row 0 is that of the first reset, or the last one of the rollout before.
    game.begin();
    for (std::size_t p = 0; p < policies.size(); ++p) {
      learners[p].enter(iteration - 1);
      learners[p].begin_rollout(clock);
      players[p]->explore(learners[p].exploration());
    }
    for (int t = 0; t < steps; ++t) {
      game.act(t, {.seed = seed,
                   .step = static_cast<std::uint64_t>(t),
                   .time = clock.time(),
                   .rollout_steps = steps});
      game.step(t);
    }
    // The value of the last observation, which bootstraps the returns of the rollout.
    for (std::size_t p = 0; p < policies.size(); ++p) policies[p].evaluate(buffers[p], steps);
    episodes.follow(trajectory, buffers[0]);

    // Update: advantages, then optimizer steps over minibatches.
    wd::prepare(learners);
    wd::update(learners, clock);
    clock.advance(config.trainer.train_batch_size);

    if (iteration % 20 == 0 || iteration == iterations)
      std::printf("%lld steps, mean return %.2f\n",
                  static_cast<long long>(iteration * config.trainer.train_batch_size), episodes.take_mean());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return train(argc > 1 ? argv[1] : "cartpole", {argv + (argc > 2 ? 2 : argc), argv + argc});
  } catch (const std::exception& error) {
    const bool of_use = dynamic_cast<const wd::UsageError*>(&error) != nullptr;
    std::fprintf(stderr, "error: %s\n", error.what());
    return of_use ? 2 : 1;
  }
}
