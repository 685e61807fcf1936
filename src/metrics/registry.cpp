// registry.cpp: every metric and its reduction over ranks, in one table.
#include <algorithm>
#include <array>

#include "wd/error.h"
#include "wd/metrics.h"

namespace wd {
namespace {

// Counts are of the whole job already, equal on all ranks: the maximum is that number. So are values computed
// from reduced sums (standard deviations, explained variance, gradient norm, learning rate): a mean leaves
// them as they are.
constexpr std::array kMetrics{
    Metric{"iteration", Reduce::kMax},
    Metric{"env_steps", Reduce::kMax},
    Metric{"agent_steps", Reduce::kMax},
    Metric{"episodes", Reduce::kSum},  // ended in this interval

    // time/...: all that depends on the clock; reruns differ here and nowhere else
    Metric{"wall_s", Reduce::kMax},
    Metric{"environment_s", Reduce::kMax},
    Metric{"inference_s", Reduce::kMax},
    Metric{"update_s", Reduce::kMax},
    Metric{"other_s", Reduce::kMax},
    Metric{"env_steps_per_s", Reduce::kSum},
    Metric{"agent_steps_per_s", Reduce::kSum},

    // POLICY/...
    Metric{"total_loss", Reduce::kMean},
    Metric{"policy_loss", Reduce::kMean},
    Metric{"value_loss", Reduce::kMean},
    Metric{"entropy", Reduce::kMean},
    Metric{"approx_kl", Reduce::kMean},
    Metric{"clip_fraction", Reduce::kMean},
    Metric{"value_mean", Reduce::kMean},
    Metric{"advantage_mean", Reduce::kMean},
    Metric{"advantage_std", Reduce::kMean},
    Metric{"return_mean", Reduce::kMean},  // discounted, the value function's target
    Metric{"return_std", Reduce::kMean},
    Metric{"explained_variance", Reduce::kMean},
    Metric{"grad_norm", Reduce::kMean},
    Metric{"log_std", Reduce::kMean},
    Metric{"learning_rate", Reduce::kMean},
    Metric{"entropy_coeff", Reduce::kMean},
    Metric{"vf_loss_coeff", Reduce::kMean},
    Metric{"updates", Reduce::kMax},
    Metric{"reward_mean", Reduce::kMean},
    Metric{"reward_max", Reduce::kMax},
    Metric{"mean_return", Reduce::kMean},  // of whole episodes
    Metric{"max_return", Reduce::kMax},
    Metric{"episode_length", Reduce::kMean},
};

constexpr std::string_view kEnvironmentGroup = "env/";

}  // namespace

std::span<const Metric> metrics() { return kMetrics; }

Reduce reduce_of(std::string_view logged_name) {
  if (logged_name.starts_with(kEnvironmentGroup)) return Reduce::kMean;
  const std::string_view leaf = logged_name.substr(logged_name.rfind('/') + 1);
  const auto found = std::find_if(kMetrics.begin(), kMetrics.end(),
                                  [leaf](const Metric& metric) { return metric.name == leaf; });
  WD_CHECK(found != kMetrics.end(), "metric '", logged_name, "' is not declared in src/metrics/registry.cpp");
  return found->reduce;
}

}  // namespace wd
