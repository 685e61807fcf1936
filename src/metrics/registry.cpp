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
    Metric{"", "iteration", "iterations (rollout and update) so far", Reduce::kMax},
    Metric{"", "env_steps", "environment steps so far, summed over replicas; steps that only reset count too",
           Reduce::kMax},
    Metric{"", "agent_steps", "env_steps times the number of agents", Reduce::kMax},
    Metric{"", "episodes", "episodes that ended", Reduce::kMax},

    Metric{kPolicy, "mean_return",
           "return of episodes that ended: undiscounted sum of rewards, mean over the policy's agents"},
    Metric{kPolicy, "max_return", "maximum return of these episodes", Reduce::kMax},
    Metric{kPolicy, "recent_return",
           "mean return of the last episodes of every replica; used by stop_return"},
    Metric{kPolicy, "episode_length", "mean steps of the episodes that ended"},
    Metric{kPolicy, "reward_mean", "mean reward per agent and step"},
    Metric{kPolicy, "reward_min", "minimum reward", Reduce::kMin},
    Metric{kPolicy, "reward_max", "maximum reward", Reduce::kMax},
    Metric{kPolicy, "total_loss", "policy_loss + vf_loss_coeff * value_loss - entropy_coeff * entropy"},
    Metric{kPolicy, "policy_loss",
           "loss of A2C, PPO (clipped) or REINFORCE; of an off-policy actor: minus the value of its actions, "
           "and SAC's temperature times their log-probability"},
    Metric{kPolicy, "value_loss",
           "squared error of the value function; PQN and DQN: of the values of the chosen actions, halved or "
           "Huber's; DDPG, TD3 and SAC: the same, summed over critics"},
    Metric{kPolicy, "entropy", "entropy of the action distribution, summed over heads [nat]"},
    Metric{kPolicy, "vf_loss_coeff", "current value of the setting"},
    Metric{kPolicy, "entropy_coeff", "current value of the setting"},
    Metric{kPolicy, "value_mean", "mean value estimate, at the time of acting"},
    Metric{kPolicy, "advantage_mean", "mean advantage, before normalize_advantage"},
    Metric{kPolicy, "advantage_std", "standard deviation of the advantage, before normalize_advantage"},
    Metric{kPolicy, "return_mean",
           "mean of the estimated discounted returns, before normalize_return and after normalize_reward"},
    Metric{kPolicy, "return_std", "their standard deviation"},
    Metric{kPolicy, "explained_variance",
           "1 - var(return - value) / var(return): 1 for a perfect value function, 0 for a constant; with "
           "normalize_return, of the normalized returns"},
    Metric{kPolicy, "approx_kl",
           "estimated KL divergence from the policy that acted: mean of ratio - 1 - log(ratio)"},
    Metric{kPolicy, "approx_kl_last_epoch",
           "the same of the last epoch that was trained: how far the whole update has moved"},
    Metric{kPolicy, "clip_fraction",
           "fraction of transitions whose probability ratio is outside PPO's limits"},
    Metric{kPolicy, "grad_norm", "norm of the gradient before clipping, mean over optimizer steps"},
    Metric{kPolicy, "critic_grad_norm", "the same of the critics of DDPG, TD3 and SAC"},
    Metric{kPolicy, "update_ratio", "norm of the last optimizer step, divided by that of the weights"},
    Metric{kPolicy, "critic_update_ratio", "the same of the critics of DDPG, TD3 and SAC"},
    Metric{kPolicy, "dormant_share",
           "share of the hidden units of fully connected networks whose mean |activation| is at most 0.025 "
           "times that of their layer, over at most 1,024 rows; null for other networks"},
    Metric{
        kPolicy, "saturated_share",
        "share of the gates of a memory below 0.05 or above 0.95 (of mingru z, of gru r and z, of lstm i and "
        "f), over a block of sequences; null for other networks"},
    Metric{kPolicy, "critic_dormant_share", "the same of the critics of DDPG, TD3 and SAC"},
    Metric{
        kPolicy, "overestimation",
        "value less the discounted return that followed, mean over the transitions that count (see above)"},
    Metric{
        kPolicy, "critics_gap",
        "greatest less least value that one of several critics gives to what was played, mean over at most "
        "1,024 rows of the last batch"},
    Metric{kPolicy, "temperature", "weight of the entropy in SAC's losses"},
    Metric{kPolicy, "total_loss_z",
           "distance of total_loss from its mean over the last 100 lines, in their standard deviations; null "
           "until there are 20; a warning is logged above 10"},
    Metric{kPolicy, "grad_norm_z", "the same for grad_norm"},
    Metric{kPolicy, "epsilon", "probability of a uniform draw of the action"},
    Metric{kPolicy, "learning_rate", "current learning rate"},
    Metric{kPolicy, "updates", "optimizer steps per iteration", Reduce::kMax},
    Metric{kPolicy, "empty_minibatches",
           "minibatches per iteration that made no step because none of their transitions count",
           Reduce::kMax},
    Metric{kPolicy, "memory_size", "transitions in the replay memory", Reduce::kMax},
    Metric{kPolicy, "memory_age",
           "mean age of the transitions of the last batch [environment steps]; null if they were recorded"},
    Metric{
        kPolicy, "counted_share",
        "share of the rows of the last batch that count: not those of steps that only reset, and of agents "
        "out of the game"},
    Metric{kPolicy, "td_error_median", "median over the last batch of |target - value|, of the first critic"},
    Metric{kPolicy, "td_error_p90", "90th percentile of the same"},
    Metric{kPolicy, "action_std_over_agents",
           "standard deviation of the action over the agents of one replica in one step, one per head; for a "
           "bounded box in units of half its width; null where there is only one agent"},
    Metric{kPolicy, "action_std_over_envs",
           "the same over the replicas of one worker, agent by agent; null where it has only one"},
    Metric{kPolicy, "action_std_over_time",
           "the same over the steps of a rollout; null where it has only one"},
    Metric{kPolicy, "saturated_share",
           "share of the rollout's actions more than 99 % of half the width from the middle of their bounds, "
           "one "
           "per component"},
    Metric{kPolicy, "past_share", "with a pool of past selves: share of the games that one of them played"},
    Metric{kPolicy, "past_oldest", "age of the oldest of them [environment steps]"},
    Metric{kPolicy, "past_win_rate",
           "share of the games against it that the learner won, one for each of them from the latest on, or "
           "for each of 16 groups of them; null before the first game"},

    Metric{kEnvironmentGroup, "FIELD",
           "the environment's own statistics at the end of episodes (`wdtrain envs NAME` lists them)"},

    Metric{kEvaluationGroup, "ROLE/return",
           "mean return of the evaluation's episodes: sum of rewards, mean over the role's agents; only in "
           "lines of iterations that were evaluated (eval.every); with eval.opponent: both, ROLE is "
           "ROLE_vs_random or ROLE_vs_scripted; ROLE_average is played by averages of weights "
           "(policy.NAME.average)"},
    Metric{kEvaluationGroup, "ROLE/return_low", "lower end of its 95 % interval"},
    Metric{kEvaluationGroup, "ROLE/return_high", "upper end of its 95 % interval"},
    Metric{kEvaluationGroup, "ROLE/env/FIELD",
           "the environment's own statistics at the end of episodes in which this role is trained; with "
           "eval.opponent"},
    Metric{kEvaluationGroup, "length", "mean length of these episodes; without eval.opponent"},
    Metric{kEvaluationGroup, "env/FIELD",
           "the environment's own statistics at their end; without eval.opponent"},

    Metric{kTimeGroup, "wall_s", "time since the start of training [s]", Reduce::kMax},
    Metric{kTimeGroup, "environment_s",
           "time for stepping replicas [s]; null if whole rollouts are replayed (trainer.cuda_graphs)",
           Reduce::kMax},
    Metric{kTimeGroup, "inference_s", "time for drawing actions [s]; null in the same case", Reduce::kMax},
    Metric{kTimeGroup, "update_s", "time for returns and optimizer steps [s]", Reduce::kMax},
    Metric{kTimeGroup, "checkpoint_s",
           "time that training waited for checkpoints, which are written in the background [s]",
           Reduce::kMax},
    Metric{kTimeGroup, "evaluation_s",
           "time for evaluations and recorded episodes (eval.every, play.every) [s]", Reduce::kMax},
    Metric{kTimeGroup, "other_s", "time for everything else [s]", Reduce::kMax},
    Metric{kTimeGroup, "collective_s",
           "time for collective operations, most of it waiting for the slowest worker; on GPUs only those on "
           "host memory [s]",
           Reduce::kMax},
    Metric{kTimeGroup, "rollout_mean_s", "time for rollouts, mean over workers [s]", Reduce::kMax},
    Metric{kTimeGroup, "rollout_max_s", "time for rollouts, of the slowest worker [s]", Reduce::kMax},
    Metric{kTimeGroup, "env_steps_per_s", "environment steps per second", Reduce::kSum},
    Metric{kTimeGroup, "agent_steps_per_s", "agent steps per second", Reduce::kSum},
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

void declare_metric(std::string_view name, std::string_view help, Reduce reduce) {
  if (name.empty() ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string_view::npos)
    throw UsageError(concat("metric '", name, "': a name has only letters a-z, digits and _"));
  if (const Metric* known = find(kPolicy, name)) {
    if (known->reduce == reduce && known->help == help) return;
    throw UsageError(concat("metric '", name, "' is declared already, as \"", known->help, "\""));
  }
  all().push_back({kPolicy, name, help, reduce});
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
