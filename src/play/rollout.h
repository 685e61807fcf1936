// rollout.h: writes recorded episodes as JSON, or as a web page that plays them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

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
  std::vector<Episode> episodes;
};

// {"env", "run", "roles", "fields", "drawing", "episodes"}: numbers as lists, [frame or step][agent].
std::string rollout_json(const Rollout& rollout);

// One page with everything in it, which loads nothing from elsewhere.
std::string rollout_page(const Rollout& rollout);

}  // namespace wd
