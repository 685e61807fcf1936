// registry.cpp: every metric, its reduction over ranks and its meaning, in one table.
#include <array>
#include <vector>

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
           "environment steps so far, summed over replicas; steps that only reset count too"},
    Metric{"", "agent_steps", Reduce::kMax, "env_steps times the number of agents"},
    Metric{"", "episodes", Reduce::kMax, "episodes that ended"},

    Metric{kPolicy, "mean_return", Reduce::kMean,
           "return of episodes that ended: undiscounted sum of rewards, mean over the policy's agents"},
    Metric{kPolicy, "max_return", Reduce::kMax, "maximum return of these episodes"},
    Metric{kPolicy, "recent_return", Reduce::kMean,
           "mean return of the last episodes of every replica; used by stop_return and `best`"},
    Metric{kPolicy, "episode_length", Reduce::kMean, "mean steps of the episodes that ended"},
    Metric{kPolicy, "reward_mean", Reduce::kMean, "mean reward per agent and step"},
    Metric{kPolicy, "reward_min", Reduce::kMin, "minimum reward"},
    Metric{kPolicy, "reward_max", Reduce::kMax, "maximum reward"},
    Metric{kPolicy, "total_loss", Reduce::kMean,
           "policy_loss + vf_loss_coeff * value_loss - entropy_coeff * entropy"},
    Metric{kPolicy, "policy_loss", Reduce::kMean,
           "loss of A2C, PPO (clipped) or REINFORCE; of an off-policy actor: minus the value of its actions, "
           "and SAC's temperature times their log-probability"},
    Metric{kPolicy, "value_loss", Reduce::kMean,
           "squared error of the value function; PQN and DQN: of the values of the chosen actions, halved or "
           "Huber's; DDPG, TD3 and SAC: the same, summed over critics"},
    Metric{kPolicy, "entropy", Reduce::kMean, "entropy of the action distribution, summed over heads [nat]"},
    Metric{kPolicy, "vf_loss_coeff", Reduce::kMean, "current value of the setting"},
    Metric{kPolicy, "entropy_coeff", Reduce::kMean, "current value of the setting"},
    Metric{kPolicy, "value_mean", Reduce::kMean, "mean value estimate, at the time of acting"},
    Metric{kPolicy, "advantage_mean", Reduce::kMean, "mean advantage, before normalize_advantage"},
    Metric{kPolicy, "advantage_std", Reduce::kMean,
           "standard deviation of the advantage, before normalize_advantage"},
    Metric{kPolicy, "return_mean", Reduce::kMean,
           "mean of the estimated discounted returns, before normalize_return and after normalize_reward"},
    Metric{kPolicy, "return_std", Reduce::kMean, "their standard deviation"},
    Metric{kPolicy, "explained_variance", Reduce::kMean,
           "1 - var(return - value) / var(return): 1 for a perfect value function, 0 for a constant; with "
           "normalize_return, of the normalized returns"},
    Metric{kPolicy, "approx_kl", Reduce::kMean,
           "estimated KL divergence from the policy that acted: mean of ratio - 1 - log(ratio)"},
    Metric{kPolicy, "approx_kl_last_epoch", Reduce::kMean,
           "the same of the last epoch that was trained: how far the whole update has moved"},
    Metric{kPolicy, "clip_fraction", Reduce::kMean,
           "fraction of transitions whose probability ratio is outside PPO's limits"},
    Metric{kPolicy, "grad_norm", Reduce::kMean,
           "norm of the gradient before clipping, mean over optimizer steps"},
    Metric{kPolicy, "critic_grad_norm", Reduce::kMean, "the same of the critics of DDPG, TD3 and SAC"},
    Metric{kPolicy, "update_ratio", Reduce::kMean,
           "norm of the last optimizer step, divided by that of the weights"},
    Metric{kPolicy, "critic_update_ratio", Reduce::kMean, "the same of the critics of DDPG, TD3 and SAC"},
    Metric{kPolicy, "dormant_share", Reduce::kMean,
           "share of the hidden units of fully connected networks whose mean |activation| is at most 0.025 "
           "times that of their layer, over at most 1,024 rows; null for other networks"},
    Metric{kPolicy, "critic_dormant_share", Reduce::kMean, "the same of the critics of DDPG, TD3 and SAC"},
    Metric{
        kPolicy, "overestimation", Reduce::kMean,
        "value less the discounted return that followed, mean over transitions of which that is known (see "
        "above)"},
    Metric{
        kPolicy, "critics_gap", Reduce::kMean,
        "greatest less least value that one of several critics gives to what was played, mean over at most "
        "1,024 rows of the last batch"},
    Metric{kPolicy, "temperature", Reduce::kMean, "weight of the entropy in SAC's losses"},
    Metric{kPolicy, "total_loss_z", Reduce::kMean,
           "distance of total_loss from its mean over the last 100 lines, in their standard deviations; null "
           "until there are 20; a warning is logged above 10"},
    Metric{kPolicy, "grad_norm_z", Reduce::kMean, "the same for grad_norm"},
    Metric{kPolicy, "epsilon", Reduce::kMean, "probability of a uniform draw of the action"},
    Metric{kPolicy, "learning_rate", Reduce::kMean, "current learning rate"},
    Metric{kPolicy, "updates", Reduce::kMax, "optimizer steps per iteration"},
    Metric{kPolicy, "empty_minibatches", Reduce::kMax,
           "minibatches per iteration that made no step because none of their transitions count"},
    Metric{kPolicy, "memory_size", Reduce::kMax, "transitions in the replay memory"},
    Metric{kPolicy, "memory_age", Reduce::kMean,
           "mean age of the transitions of the last batch [environment steps]; null if they were recorded"},
    Metric{
        kPolicy, "counted_share", Reduce::kMean,
        "share of the rows of the last batch that count: not those of steps that only reset, and of agents "
        "out of the game"},
    Metric{kPolicy, "td_error_median", Reduce::kMean,
           "median over the last batch of |target - value|, of the first critic"},
    Metric{kPolicy, "td_error_p90", Reduce::kMean, "90th percentile of the same"},
    Metric{kPolicy, "action_std_over_agents", Reduce::kMean,
           "standard deviation of the action over the agents of one replica in one step, one per head; for a "
           "bounded box in units of half its width; null where there is only one agent"},
    Metric{kPolicy, "action_std_over_envs", Reduce::kMean,
           "the same over the replicas of one worker, agent by agent; null where it has only one"},
    Metric{kPolicy, "action_std_over_time", Reduce::kMean,
           "the same over the steps of a rollout; null where it has only one"},
    Metric{kPolicy, "saturated_share", Reduce::kMean,
           "share of the rollout's actions more than 99 % of half the width from the middle of their bounds, "
           "one "
           "per component"},

    Metric{kEnvironmentGroup, "FIELD", Reduce::kMean,
           "the environment's own statistics at the end of episodes (`wdtrain envs NAME` lists them)"},

    Metric{kEvaluationGroup, "ROLE/return", Reduce::kMean,
           "mean return of the evaluation's episodes: sum of rewards, mean over the role's agents; only in "
           "lines of iterations that were evaluated (eval.every); with eval.opponent: both, ROLE is "
           "ROLE_vs_random or ROLE_vs_scripted"},
    Metric{kEvaluationGroup, "ROLE/return_low", Reduce::kMean, "lower end of its 95 % interval"},
    Metric{kEvaluationGroup, "ROLE/return_high", Reduce::kMean, "upper end of its 95 % interval"},
    Metric{kEvaluationGroup, "ROLE/env/FIELD", Reduce::kMean,
           "the environment's own statistics at the end of episodes in which this role is trained; with "
           "eval.opponent"},
    Metric{kEvaluationGroup, "length", Reduce::kMean, "mean length of these episodes; without eval.opponent"},
    Metric{kEvaluationGroup, "env/FIELD", Reduce::kMean,
           "the environment's own statistics at their end; without eval.opponent"},

    Metric{kTimeGroup, "wall_s", Reduce::kMax, "time since the start of training [s]"},
    Metric{kTimeGroup, "environment_s", Reduce::kMax,
           "time for stepping replicas [s]; null if whole rollouts are replayed (trainer.cuda_graphs)"},
    Metric{kTimeGroup, "inference_s", Reduce::kMax, "time for drawing actions [s]; null in the same case"},
    Metric{kTimeGroup, "update_s", Reduce::kMax, "time for returns and optimizer steps [s]"},
    Metric{kTimeGroup, "checkpoint_s", Reduce::kMax,
           "time that training waited for checkpoints, which are written in the background [s]"},
    Metric{kTimeGroup, "evaluation_s", Reduce::kMax,
           "time for evaluations and recorded episodes (eval.every, play.every) [s]"},
    Metric{kTimeGroup, "other_s", Reduce::kMax, "time for everything else [s]"},
    Metric{kTimeGroup, "collective_s", Reduce::kMax,
           "time for collective operations, most of it waiting for the slowest worker; on GPUs only those on "
           "host memory [s]"},
    Metric{kTimeGroup, "rollout_mean_s", Reduce::kMax, "time for rollouts, mean over workers [s]"},
    Metric{kTimeGroup, "rollout_max_s", Reduce::kMax, "time for rollouts, of the slowest worker [s]"},
    Metric{kTimeGroup, "env_steps_per_s", Reduce::kSum, "environment steps per second"},
    Metric{kTimeGroup, "agent_steps_per_s", Reduce::kSum, "agent steps per second"},
};

// "tagger/return" is declared as "ROLE/return", "env/tags" as "env/FIELD".
std::string_view evaluated(std::string_view name) {
  if (name.starts_with("env/")) return "env/FIELD";
  const std::size_t slash = name.find('/');
  if (slash != std::string_view::npos && name.substr(slash).starts_with("/env/")) return "ROLE/env/FIELD";
  for (const Metric& metric : kMetrics) {
    if (metric.group == kEvaluationGroup && slash != std::string_view::npos &&
        metric.name.starts_with("ROLE/") && metric.name.substr(4) == name.substr(slash))
      return metric.name;
  }
  return name;
}

// Splits "GROUP/name/head" into its group and its name.
std::pair<std::string_view, std::string_view> split(std::string_view logged) {
  const std::size_t first = logged.find('/');
  if (first == std::string_view::npos) return {"", logged};
  const std::string_view group = logged.substr(0, first), rest = logged.substr(first + 1);
  if (group == kEnvironmentGroup) return {group, "FIELD"};
  if (group == kTimeGroup) return {group, rest};
  if (group == kEvaluationGroup) return {group, evaluated(rest)};
  return {kPolicy, rest.substr(0, rest.find('/'))};
}

std::vector<Metric>& all() {
  static std::vector<Metric> metrics(kMetrics.begin(), kMetrics.end());
  return metrics;
}

const Metric* find(std::string_view group, std::string_view name) {
  for (const Metric& metric : all()) {
    if (metric.group == group && metric.name == name) return &metric;
  }
  return nullptr;
}

}  // namespace

std::span<const Metric> metrics() { return all(); }

void declare_metric(std::string_view name, Reduce reduce, std::string_view help) {
  if (name.empty() ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string_view::npos)
    throw UsageError(concat("metric '", name, "': a name has only letters a-z, digits and _"));
  if (const Metric* known = find(kPolicy, name)) {
    if (known->reduce == reduce && known->help == help) return;
    throw UsageError(concat("metric '", name, "' is declared already, as \"", known->help, "\""));
  }
  all().push_back({kPolicy, name, reduce, help});
}

const Metric* find_metric(std::string_view logged_name) {
  const auto [group, name] = split(logged_name);
  return find(group, name);
}

Reduce reduce_of(std::string_view logged_name) {
  if (const Metric* metric = find_metric(logged_name)) return metric->reduce;
  throw std::runtime_error(concat("metric '", logged_name, "' is not declared (AlgorithmSettings::metrics)"));
}

}  // namespace wd
