// rollout.h: writes recorded episodes as JSON, or as a web page that plays them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/evaluation/evaluator.h"
#include "src/evaluation/recorder.h"

namespace wd {

struct Rollout {
  struct Episode {
    std::vector<std::string> players;  // by role
    EpisodeRecord record;
  };

  std::string environment, run, version;
  Spec spec;
  StateLayout layout;
  bool shows_itself = false;  // its replicas are outside (wd/outside.h), and make pictures of themselves
  std::vector<Episode> episodes;
  bool beside = false;  // the second half has other players in the same starts: each belongs beside one
  // Why training ended in the last step of the only episode.
  struct Failure {
    std::string message;
    int agent = -1;  // of all roles; -1: none
  };
  std::optional<Failure> failure = {};
};

// An empty recording of a run's environment.
Rollout rollout_of(const Environment& environment, const std::string& run);

// Plays the match and adds the first episode of each replica, at most max_steps steps of it.
void record(Evaluator& evaluator, const Match& match, int max_steps, Rollout& rollout,
            Pictures pictures = Pictures::kNone);

// {"env", "run", "roles", "fields", "drawing", "episodes"}, and "beside" and "failure" if there is one:
// numbers as lists, [frame or step][agent].
std::string rollout_json(const Rollout& rollout);

// One page with everything in it, which loads nothing from elsewhere.
std::string rollout_page(const Rollout& rollout);

}  // namespace wd
