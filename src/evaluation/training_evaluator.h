// training_evaluator.h: evaluates policies while they are trained.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/evaluation/evaluator.h"
#include "src/trainer/train.h"

namespace wd {

// Where eval.device wants episodes to be played, if training is on this device. Throws UsageError if that
// cannot be.
Device evaluation_device(const Config& config, const Environment& environment, Device training,
                         int local_rank);

// Plays with copies of the policies' current weights and with random numbers of its own, so training does not
// depend on it.
class TrainingEvaluator {
 public:
  // Returns the tensors that training has now for weights of this name, as WeightsSource gets it.
  using CurrentWeights = std::function<std::vector<NamedTensor>(const std::string& name)>;

  // Configuration and environment must outlive it. Throws UsageError if eval.opponent cannot play. `device`:
  // evaluation_device(), to which the weights are copied before each match.
  TrainingEvaluator(const Config& config, const Environment& environment, CurrentWeights weights,
                    Device device);

  // Plays eval.episodes episodes per match; if a policy has an average of its weights, also with averages in
  // place of the weights.
  Evaluation evaluate();

  // Episodes of the players that are trained now, with the returns of the first policy. Their random numbers
  // follow from the iteration and from how many were played before.
  FreshEpisodes play_fresh(std::int64_t iteration, int first, int episodes);

  Evaluator& evaluator() { return evaluator_; }
  // All players trained.
  Match match() const;

 private:
  Match match_of_averages() const;
  // The mean return of the first policy's agents.
  double judged(const std::vector<double>& return_of_side) const;

  const Config& config_;
  Spec spec_;
  Evaluator evaluator_;
  // By entry of EvalSettings::opponents(), and side.
  std::vector<std::vector<FoundPlayer>> opponents_;
};

}  // namespace wd
