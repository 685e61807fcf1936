// bounds.cpp: random play in guarded memory, once for each edge of the arrays.
#include "src/base/stopwatch.h"
#include "src/replicas/check/checks.h"
#include "src/replicas/check/guarded_replica.h"
#include "src/replicas/check/watchdog.h"
#include "wd/error.h"

namespace wd {
namespace {

using Edge = GuardedReplica::Edge;

}  // namespace

CheckResult check_bounds(const Environment& environment, const CheckOptions& options) {
  CheckResult result{"indices stay inside of arrays", ""};
  const auto failed = [&](int step, const std::string& found) {
    return CheckResult{result.name, concat("step ", step, ": ", found), false};
  };
  GuardedReplica sides[] = {GuardedReplica(environment, Edge::kBegin),
                            GuardedReplica(environment, Edge::kEnd)};
  World worlds[] = {World(environment, 1, options.seed), World(environment, 1, options.seed)};
  const std::size_t roles = worlds[0].spec().roles.size();
  const Stopwatch watch;
  int step = 0, resets = 0;
  for (bool alike = true; step < options.steps && (step < kMinSteps || watch.seconds() < options.seconds);
       ++step) {
    const std::size_t role = static_cast<std::size_t>(step) % roles;
    worlds[0].draw_actions(static_cast<std::uint64_t>(step));
    for (std::size_t r = 0; r < roles; ++r) worlds[1].rows[r].action = worlds[0].rows[r].action;
    for (World& world : worlds) {
      if (step == kResetEvery / 2) world.header(0).reset_pending = 1;  // once: then it plays whole episodes
      world.jump(step);
    }
    const World before = worlds[0];
    for (int k = 0; k < 2; ++k) {
      const WatchedCall call([&] { return concat("step ", step, ": ", sides[k].place()); });
      const MemoryFault fault = run_until_fault([&] { sides[k].step(worlds[k], role); });
      if (fault.signal != 0) return failed(step, sides[k].meaning(fault));
    }
    resets += worlds[0].reset_step[0];
    if (!alike) continue;
    const std::string found = difference(worlds[0], 0, worlds[1], 0);
    if (found.empty()) continue;
    // Step once more, twice on the same side: a difference that also appears there is not this check's
    // concern.
    World again[] = {before, before};
    for (World& world : again) sides[0].step(world, role);
    if (difference(again[0], 0, again[1], 0).empty())
      return failed(
          step,
          "memory next to an array, or the action of another kind or head, affects the result: " + found);
    alike = false;
  }
  result.detail = concat(step, " steps, ", resets, " resets");
  return result;
}

}  // namespace wd
