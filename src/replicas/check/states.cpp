// states.cpp: checks that a reset leaves no residue, that a copy of a state is as good as the state, and that
// derive() agrees with reset().
#include <cstring>

#include "src/replicas/check/checks.h"
#include "src/replicas/check/watchdog.h"
#include "src/replicas/check/world.h"
#include "wd/error.h"

namespace wd {
namespace {

constexpr int kStateReplicas = 3;
constexpr int kEpisodes = 8;  // resets that are compared, after 1, 2, 4, ... steps
constexpr int kCopiedSteps = 25;

void play(World& world, int steps, std::uint64_t& step) {
  for (int k = 0; k < steps; ++k) {
    world.draw_actions(step++);
    world.step();
  }
}

void copy_actions(const World& from, World& to) {
  for (std::size_t r = 0; r < from.rows.size(); ++r) to.rows[r].action = from.rows[r].action;
}

std::string difference_of_all(const World& a, const World& b) {
  for (int e = 0; e < a.num_envs(); ++e) {
    if (std::string found = difference(a, e, b, e); !found.empty()) return found;
  }
  return {};
}

// The next episode of each replica, started in memory filled with `byte`.
World fresh(World& used, std::uint64_t seed, int byte) {
  World world(used.environment(), used.num_envs(), seed);
  for (int e = 0; e < used.num_envs(); ++e) {
    std::memset(world.block(e), byte, world.layout().block_bytes);
    world.header(e) = used.header(e);
  }
  copy_actions(used, world);
  return world;
}

}  // namespace

CheckResult check_resets(const Environment& environment, const CheckOptions& options) {
  CheckResult result{"a reset leaves no residue",
                     concat(kEpisodes, " resets of ", kStateReplicas, " replicas")};
  World used(environment, kStateReplicas, options.seed);
  std::uint64_t step = 0;
  for (int episode = 0, steps = 1; episode < kEpisodes; ++episode, steps *= 2) {
    play(used, 1 + steps, step);
    for (int e = 0; e < kStateReplicas; ++e) used.header(e).reset_pending = 1;
    World zeros = fresh(used, options.seed, 0x00), poisoned = fresh(used, options.seed, 0xff);
    for (World* world : {&used, &zeros, &poisoned}) world->step(PhaseOrder::kForward);
    std::string found = difference_of_all(poisoned, zeros);
    if (found.empty()) found = difference_of_all(used, zeros);
    if (found.empty()) continue;
    return {result.name, "reset from used or filled memory, and from memory full of zeros, differ: " + found,
            false};
  }
  return result;
}

CheckResult check_copies(const Environment& environment, const CheckOptions& options) {
  CheckResult result{"the state is all there is", concat("a copy played ", kCopiedSteps, " steps")};
  World original(environment, kStateReplicas, options.seed);
  std::uint64_t step = 0;
  play(original, 10, step);
  World copy(environment, kStateReplicas, options.seed);
  std::memcpy(copy.block(0), original.block(0), std::size_t{kStateReplicas} * original.layout().block_bytes);
  // The original plays first, so that anything outside the state has changed when the copy plays.
  std::vector<std::vector<RoleRows>> played;
  for (int k = 0; k < kCopiedSteps; ++k) {
    play(original, 1, step);
    played.emplace_back();
    for (const RoleRows& rows : original.rows) played.back().push_back({.action = rows.action});
  }
  for (const std::vector<RoleRows>& roles : played) {
    for (std::size_t r = 0; r < roles.size(); ++r) copy.rows[r].action = roles[r].action;
    copy.step();
  }
  if (std::string found = difference_of_all(original, copy); !found.empty()) {
    return {result.name, "an original and its copy go different ways: " + found, false};
  }
  return result;
}

CheckResult check_derive(const Environment& environment, const CheckOptions& options) {
  CheckResult result{"derive() agrees with reset()", concat(kStateReplicas, " starts")};
  World world(environment, kStateReplicas, options.seed);
  world.step();
  World derived = world;
  for (int e = 0; e < kStateReplicas; ++e) {
    const WatchedCall call([] { return std::string("derive() of a start"); });
    environment.derive(derived.layout(), derived.block(e));
    if (std::string found = state_difference(world, e, derived, e); !found.empty())
      return {result.name, found, false};
  }
  return result;
}

}  // namespace wd
