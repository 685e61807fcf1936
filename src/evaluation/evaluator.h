// evaluator.h: plays fresh episodes with a run's policies, or with random and scripted players instead.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/evaluation/interval.h"
#include "src/evaluation/recorder.h"
#include "src/game/frozen.h"
#include "wd/config.h"
#include "wd/environment.h"
#include "wd/policy.h"

namespace wd {

// The random numbers of evaluations and recordings, which no training uses: its seeds are below 2^53.
inline constexpr std::uint64_t kEvaluationSeeds = std::uint64_t{1} << 63;

// Where episodes start: as in training (for env.reset: random, as the first episodes of training did), or as
// the match's own seed determines.
enum class Starts { kTraining, kFresh };

// The starts that show how good a policy is: those that it was trained on if they are few, otherwise fresh
// ones.
Starts usual_starts(const EnvSettings& settings);

struct Match {
  std::vector<FoundPlayer> players;  // by side: Evaluator::sides()
  Starts starts = Starts::kFresh;
  int episodes = 100;
  std::uint64_t seed = 1;
  bool greedy = false;              // trained players take their most probable action
  std::uint32_t first_replica = 0;  // global id of the replica that plays the first episode
};

// One match per side: its own player against these on all other sides.
std::vector<Match> matches_against(const Match& match, const std::vector<FoundPlayer>& opponents);

// Gives a policy the trained weights of this name: its own, or average_name() of that.
using WeightsSource = std::function<void(Policy& policy, const std::string& name)>;

// Reads weights/NAME.safetensors of a run or a checkpoint.
WeightsSource weights_of(std::filesystem::path run);

// The result of one episode.
struct Episode {
  int length = 0;
  std::vector<double> returns;     // by side: sum over steps of the mean reward of its agents
  std::vector<double> statistics;  // as Spec::statistics; for a role's field, the mean over its agents
  int replica = 0;                 // of the match, that played it
};

// The mean of a number over all episodes, and its interval.
template <typename Value>
Interval interval_of(const std::vector<Episode>& episodes, const Value& value) {
  std::vector<double> values;
  for (const Episode& episode : episodes) values.push_back(value(episode));
  return mean_interval(values);
}
// The same of a statistic, over the episodes that say it.
Interval interval_of_statistic(const std::vector<Episode>& episodes, std::size_t k);

class Evaluator {
 public:
  // The configuration and the environment must outlive it.
  Evaluator(const Config& config, const Environment& environment, WeightsSource weights, Device device);

  // Plays exactly match.episodes episodes. The number that each replica plays is fixed beforehand, because
  // taking the first ones to finish would favor short episodes. An episode that does not end
  // (src/game/endless.h) is the last one of its replica, and its numbers are NaN. Actions, and what an
  // environment draws after a start, use random numbers that no training uses, and the same seed gives every
  // match the same starts. A recorder sees every step, and ends the match when it is complete. Throws
  // UsageError if a scripted player is requested and the environment has none.
  std::vector<Episode> play(const Match& match, Recorder* recorder = nullptr);

  const std::vector<GameSide>& sides() const { return sides_; }
  // [bytes] of the states and the rollout of a match.
  double bytes(const Match& match) const;
  // The precision in which policies compute: the run's, but fp32 if that is tf32 and the device is a CPU.
  Precision precision() const;

 private:
  struct Played;

  AgentIds ids_of(std::size_t side, const FoundPlayer& player) const;
  RolloutShape shape(const Match& match, std::int64_t num_envs) const;
  void add_player(Played& played, std::size_t side);
  void count_step(Played& played, std::vector<Episode>& episodes);

  const Config& config_;
  const Environment& environment_;
  WeightsSource weights_;
  Device device_;
  Spec spec_;
  std::vector<GameSide> sides_;
  std::vector<PolicyLayout> trained_;  // of the policies, in training
};

}  // namespace wd
