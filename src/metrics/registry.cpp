// registry.cpp: every metric, its reduction over ranks and its meaning, in one table.
#include <array>

#include "wd/error.h"
#include "wd/metrics.h"

namespace wd {
namespace {

constexpr std::string_view kPolicy = "POLICY";

// Counts cover the whole job and are equal on all ranks, so their maximum is that number. Values computed
// from reduced sums (standard deviations, explained variance, gradient norm, learning rate) are equal on all
// ranks too, so a mean leaves them unchanged.
constexpr std::array kMetrics{
    Metric{"", "iteration", Reduce::kMax, "iterations (rollout and update) so far"},
    Metric{"", "env_steps", Reduce::kMax,
           "environment steps so far, over all replicas; steps that only reset count"},
    Metric{"", "agent_steps", Reduce::kMax, "the same times the number of agents"},
    Metric{"", "episodes", Reduce::kMax, "episodes that ended"},

    Metric{kPolicy, "mean_return", Reduce::kMean,
           "return of episodes that ended: undiscounted sum of rewards, mean over the policy's agents"},
    Metric{kPolicy, "max_return", Reduce::kMax, "the greatest of them"},
    Metric{kPolicy, "recent_return", Reduce::kMean,
           "mean return of the last episodes of every replica: what stop_return and `best` look at"},
    Metric{kPolicy, "episode_length", Reduce::kMean, "steps of the episodes that ended"},
    Metric{kPolicy, "reward_mean", Reduce::kMean, "reward of one agent in one step"},
    Metric{kPolicy, "reward_min", Reduce::kMin, "the least"},
    Metric{kPolicy, "reward_max", Reduce::kMax, "the greatest"},
    Metric{kPolicy, "total_loss", Reduce::kMean,
           "policy_loss + vf_loss_coeff * value_loss - entropy_coeff * entropy"},
    Metric{kPolicy, "policy_loss", Reduce::kMean, "of A2C, PPO (clipped) or REINFORCE"},
    Metric{kPolicy, "value_loss", Reduce::kMean, "squared error of the value"},
    Metric{kPolicy, "entropy", Reduce::kMean, "of the policy's action, summed over heads [nat]"},
    Metric{kPolicy, "vf_loss_coeff", Reduce::kMean, "in force"},
    Metric{kPolicy, "entropy_coeff", Reduce::kMean, "in force"},
    Metric{kPolicy, "value_mean", Reduce::kMean, "of the value as it was when the actions were drawn"},
    Metric{kPolicy, "advantage_mean", Reduce::kMean, "before normalize_advantage"},
    Metric{kPolicy, "advantage_std", Reduce::kMean, "before normalize_advantage"},
    Metric{kPolicy, "return_mean", Reduce::kMean, "discounted, as estimated, before normalize_return"},
    Metric{kPolicy, "return_std", Reduce::kMean, "before normalize_return"},
    Metric{kPolicy, "explained_variance", Reduce::kMean,
           "1 - var(return - value) / var(return): 1 is a perfect value, 0 one that knows nothing; with "
           "normalize_return of normalized returns, which the value is taught"},
    Metric{kPolicy, "approx_kl", Reduce::kMean, "how far the policy moved: mean of ratio - 1 - log(ratio)"},
    Metric{kPolicy, "clip_fraction", Reduce::kMean, "transitions whose probability ratio left PPO's limits"},
    Metric{kPolicy, "grad_norm", Reduce::kMean,
           "norm of the gradient before clipping, mean over optimizer steps"},
    Metric{kPolicy, "learning_rate", Reduce::kMean, "in force"},
    Metric{kPolicy, "updates", Reduce::kMax, "optimizer steps of one iteration"},
    Metric{kPolicy, "empty_minibatches", Reduce::kMax,
           "minibatches of one iteration that made no step, as no transition of theirs counts"},
    Metric{kPolicy, "action_std_over_agents", Reduce::kMean,
           "deviation of the action among agents of one replica in one step; one a head; of a bounded box in "
           "units of "
           "half its width"},
    Metric{kPolicy, "action_std_over_envs", Reduce::kMean,
           "the same among replicas of one worker, agent by agent"},
    Metric{kPolicy, "action_std_over_time", Reduce::kMean, "the same among steps of a rollout"},

    Metric{kEnvironmentGroup, "FIELD", Reduce::kMean,
           "the environment's own statistics at the end of episodes (`wdtrain envs NAME` lists them)"},

    Metric{kTimeGroup, "wall_s", Reduce::kMax, "since the start of training [s]"},
    Metric{kTimeGroup, "environment_s", Reduce::kMax,
           "spent on stepping replicas [s]; null where rollouts are replayed in one piece "
           "(trainer.cuda_graphs)"},
    Metric{kTimeGroup, "inference_s", Reduce::kMax, "on drawing actions [s]; null likewise"},
    Metric{kTimeGroup, "update_s", Reduce::kMax, "on returns and optimizer steps [s]"},
    Metric{kTimeGroup, "checkpoint_s", Reduce::kMax,
           "that training waited for checkpoints; they are written in the background [s]"},
    Metric{kTimeGroup, "other_s", Reduce::kMax, "on everything else [s]"},
    Metric{kTimeGroup, "collective_s", Reduce::kMax,
           "on operations of all workers together, most of it waiting for the slowest; on GPUs only those of "
           "host memory [s]"},
    Metric{kTimeGroup, "rollout_mean_s", Reduce::kMax, "on rollouts, mean over workers [s]"},
    Metric{kTimeGroup, "rollout_max_s", Reduce::kMax, "on rollouts, by the slowest worker [s]"},
    Metric{kTimeGroup, "env_steps_per_s", Reduce::kSum, ""},
    Metric{kTimeGroup, "agent_steps_per_s", Reduce::kSum, ""},
};

// Splits "GROUP/name/head" into its group and its name.
std::pair<std::string_view, std::string_view> split(std::string_view logged) {
  const std::size_t first = logged.find('/');
  if (first == std::string_view::npos) return {"", logged};
  const std::string_view group = logged.substr(0, first), rest = logged.substr(first + 1);
  if (group == kEnvironmentGroup) return {group, "FIELD"};
  if (group == kTimeGroup) return {group, rest};
  return {kPolicy, rest.substr(0, rest.find('/'))};
}

}  // namespace

std::span<const Metric> metrics() { return kMetrics; }

Reduce reduce_of(std::string_view logged_name) {
  const auto [group, name] = split(logged_name);
  for (const Metric& metric : kMetrics) {
    if (metric.group == group && metric.name == name) return metric.reduce;
  }
  throw std::runtime_error(concat("metric '", logged_name, "' is not declared in src/metrics/registry.cpp"));
}

}  // namespace wd
