// chase.h: an environment that has only parameters and roles.
#pragma once

#include <string>

#include "wd/config.h"

namespace wd::test {

// The parameters of WarpDrive's tag games, with the types and ranges of ours.
struct Chase {
  int num_taggers = 2, num_runners = 3;
  float grid_length = 10.0f, tagging_distance = 0.01f, tag_penalty_for_runner = 0.0f;
  int episode_length = 100;
  bool use_full_observation = true;
  bool same_spaces = true;

  void describe(Fields& field) {
    field("num_taggers", num_taggers, {1, 1024}, "agents that chase");
    field("num_runners", num_runners, {1, 1024}, "agents that flee");
    field("grid_length", grid_length, above(0, 1e4), "side of the square");
    field("tagging_distance", tagging_distance, {0, 0.1}, "reach");
    field("tag_penalty_for_runner", tag_penalty_for_runner, {-1e6, 0}, "reward for being tagged");
    field("episode_length", episode_length, {1, 1e6}, "steps of an episode");
    field("use_full_observation", use_full_observation, "see all");
    field("same_spaces", same_spaces, "one policy can serve both roles");
  }

  Spec spec() const {
    if (num_taggers > 1000) throw UsageError("num_taggers contradicts num_runners");
    Spec spec;
    spec.time_limit = episode_length;
    spec.roles = {Role{"tagger", num_taggers, {{"all", 7}}, ActionSpace::discrete({5})},
                  Role{"runner", num_runners, {{"all", same_spaces ? 7 : 8}}, ActionSpace::discrete({5})}};
    if (use_full_observation)
      for (Role& role : spec.roles) role.choice_features = {.size = 1, .fixed = {0, 1, 2, 3, 4}};
    return spec;
  }
};

inline EnvironmentAccess access_to(Chase& chase) {
  return {[&chase](Fields& fields) { chase.describe(fields); }, [&chase] { return chase.spec(); }};
}

// Finds only "chase".
inline EnvironmentLookup lookup_of(Chase& chase) {
  return [&chase](const std::string& name) {
    if (name != "chase") throw UsageError("no environment \"" + name + "\"; did you mean \"chase\"?");
    return access_to(chase);
  };
}

// The policy of each seat.
inline std::vector<int> policies_of(const Config& config) {
  std::vector<int> policies;
  for (const Seat& seat : config.seats) policies.push_back(seat.policy);
  return policies;
}

}  // namespace wd::test
