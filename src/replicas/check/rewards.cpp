// rewards.cpp: plays at random and looks for rewards that are dropped.
#include "src/base/stopwatch.h"
#include "src/replicas/check/checks.h"
#include "src/replicas/check/world.h"
#include "src/replicas/dropped.h"
#include "wd/error.h"

namespace wd {
namespace {

constexpr int kReplicas = 3;

}  // namespace

CheckResult check_rewards(const Environment& environment, const CheckOptions& options) {
  CheckResult result{"every reward counts", ""};
  World world(environment, kReplicas, options.seed);
  const Stopwatch watch;
  int step = 0;
  for (; step < options.steps && (step < kMinSteps || watch.seconds() < options.seconds); ++step) {
    world.jump(step);
    world.draw_actions(static_cast<std::uint64_t>(step));
    world.step();
    result.detail = dropped_text(world.dropped, world.spec());
    result.warns = !result.detail.empty();
    if (result.warns) return result;
  }
  result.detail = concat(step, " steps of ", kReplicas, " replicas");
  return result;
}

}  // namespace wd
