// evaluator.h: plays fresh episodes with a run's policies, or with random and scripted players in their
// place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "src/evaluation/interval.h"
#include "wd/config.h"
#include "wd/environment.h"
#include "wd/policy.h"
#include "wd/replicas.h"

namespace wd {

enum class Player { kTrained, kRandom, kScripted };

// Where episodes start: as in training (for env.reset: random, as its first episodes did), or where the
// match's own seed says.
enum class Starts { kTraining, kFresh };

// What tells how good a policy is: the starts that it was trained on where those are few, else fresh ones.
Starts usual_starts(const EnvSettings& settings);

struct Match {
  std::vector<Player> players;  // by role
  Starts starts = Starts::kFresh;
  int episodes = 100;
  std::uint64_t seed = 1;
  bool greedy = false;  // trained players take their likeliest action
};

// What one episode came to.
struct Episode {
  int length = 0;
  std::vector<double> returns;     // by role: sum over steps of the mean reward of its agents
  std::vector<double> statistics;  // as Spec::statistics; of a role's field the mean over its agents
};

class Evaluator {
 public:
  // The environment must outlive it. Reads weights/POLICY.safetensors of the run as roles need them.
  Evaluator(const Config& config, const Environment& environment, std::filesystem::path run, Device device);

  // Plays exactly `episodes` of them. Every replica plays a number that is fixed beforehand: to take the
  // first to finish would favour short ones. Actions, and what an environment draws after a start, are apart
  // from those of every training, and the same seed gives every match the same starts. Throws UsageError
  // where a scripted player is asked for and there is none.
  std::vector<Episode> play(const Match& match);

  // What policies compute in: the run's precision, but fp32 where that is tf32 and this is a CPU.
  Precision precision() const;

 private:
  struct Game;

  void add_policy(Game& game, std::size_t role);
  void act(Game& game, std::size_t role, std::uint64_t step);
  void act_by_script(Game& game, std::size_t role);
  void count_step(Game& game, std::vector<Episode>& episodes);

  const Config& config_;
  const Environment& environment_;
  std::filesystem::path run_;
  Device device_;
  Spec spec_;
};

}  // namespace wd
