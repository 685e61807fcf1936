// match_options.h: the options of commands that play a run's policies: who plays, from which starts, where.
#pragma once

#include <string>
#include <vector>

#include "src/cli/arguments.h"
#include "src/evaluation/evaluator.h"
#include "wd/experiment.h"

namespace wd::cli {

class MatchOptions {
 public:
  void add_to(Arguments& arguments);
  // Those that do not say who plays.
  void add_how(Arguments& arguments);
  // Sets `run`. Throws UsageError that names the command.
  void need_run(const std::string& command);
  // The run, on the device that the options choose.
  Experiment load() const;
  // Without episodes. Throws UsageError.
  Match match(const Experiment& setup, const std::vector<GameSide>& sides) const;

  // For each side in turn, a match of its policy against this player on all other sides. Throws UsageError
  // if --policy is given too, or if there is only one side.
  std::vector<Match> against(const Experiment& setup, const std::vector<GameSide>& sides,
                             const std::string& opponent) const;

  // The match with this player on all sides; `option` is named in errors. Throws UsageError.
  Match with(const Experiment& setup, const std::vector<GameSide>& sides, const std::string& option,
             const std::string& player) const;

  std::string run;
  std::string pretrained;  // the environment whose policies come with wd; empty: a run of the user

 private:
  std::string word_, option_, starts_, device_ = "auto", threads_;
  std::uint64_t seed_ = 1;
  std::vector<std::string> policies_, set_;
  std::string env_;
  bool greedy_ = false, trusted_ = false;
};

// sources_of_run() of a run that this program made, on any device. Throws UsageError.
ConfigSources sources_of_own_run(const std::string& run);

// load_setup() to play only: what was trained in tf32 is played in fp32 on a CPU, with a warning.
Experiment load_to_play(const ConfigSources& sources);

// Where episodes start; empty: usual_starts(). Throws UsageError.
Starts parse_starts(const std::string& word, const EnvSettings& env);

// The word of the command line.
const std::string& word_of(Starts starts);

}  // namespace wd::cli
