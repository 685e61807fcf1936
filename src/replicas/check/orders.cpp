// orders.cpp: several worlds in lockstep, each running its phases in a different order, must agree in every
// bit.
#include "src/base/stopwatch.h"
#include "src/replicas/check/checks.h"
#include "src/replicas/check/world.h"
#include "wd/error.h"

namespace wd {
namespace {

constexpr int kOrderedReplicas = 3;

constexpr const char* kOrder = "; a phase reads or writes what another of its iterations writes";
constexpr const char* kOutside = "; or code outside of phases, which all threads run, writes to the state";

struct Variant {
  const char* name;
  std::string cause;  // the usual cause of such a difference
  std::optional<PhaseOrder> order;
  World world;
  std::string fault;
};

// Steps a variant with the reference's actions, and compares. A variant with one replica plays the
// reference's last one.
void follow(const World& reference, Variant& variant) {
  const int first = reference.num_envs() - variant.world.num_envs();
  for (std::size_t r = 0; r < reference.rows.size(); ++r) {
    const std::vector<std::int32_t>& action = reference.rows[r].action;
    const auto skipped = static_cast<std::ptrdiff_t>(action.size() / kOrderedReplicas) * first;
    variant.world.rows[r].action.assign(action.begin() + skipped, action.end());
  }
  variant.world.step(variant.order);
  for (int e = 0; e < variant.world.num_envs() && variant.fault.empty(); ++e) {
    variant.fault = difference(reference, first + e, variant.world, e);
  }
}

void force_reset(World& world, int replica) {
  if (replica >= 0) world.header(replica).reset_pending = 1;
}

}  // namespace

std::vector<CheckResult> check_orders(const Environment& environment, const CheckOptions& options) {
  World reference(environment, kOrderedReplicas, options.seed);
  const auto world = [&] { return World(environment, kOrderedReplicas, options.seed); };
  Variant variants[] = {
      {"phases forward", "", PhaseOrder::kForward, world(), {}},
      {"phases backward", kOrder, PhaseOrder::kBackward, world(), {}},
      {"phases shuffled", kOrder, PhaseOrder::kShuffled, world(), {}},
      {"phases on three threads", concat(kOrder, kOutside), PhaseOrder::kThreads, world(), {}},
      {"a replica by itself",
       "; something outside of the state is shared",
       {},
       World(environment, 1, options.seed, kOrderedReplicas - 1),
       {}}};
  const Stopwatch watch;
  std::string fault;
  int step = 0, resets = 0;
  for (; step < options.steps && (step < kMinSteps || watch.seconds() < options.seconds); ++step) {
    const int victim =
        step % kResetEvery == kResetEvery / 2 ? 1 + step / kResetEvery % (kOrderedReplicas - 1) : -1;
    force_reset(reference, victim);
    reference.jump(step);
    reference.draw_actions(static_cast<std::uint64_t>(step));
    reference.step();
    for (Variant& variant : variants) {
      if (!variant.fault.empty()) continue;
      force_reset(variant.world, victim - (kOrderedReplicas - variant.world.num_envs()));
      if (variant.world.num_envs() == kOrderedReplicas) variant.world.jump(step);
      follow(reference, variant);
      if (!variant.fault.empty()) variant.fault = concat("step ", step, ": ", variant.fault);
    }
    if (fault.empty()) {
      fault = reference.fault();
      if (!fault.empty()) fault = concat("step ", step, ": ", fault);
    }
    for (const std::uint8_t flag : reference.reset_step) resets += flag;
  }
  const std::string extent = concat(step, " steps of ", kOrderedReplicas, " replicas, ", resets, " resets");
  std::vector<CheckResult> results;
  for (const Variant& variant : variants) {
    const std::string name = concat("same bits: ", variant.name);
    results.push_back(
        {name, variant.fault.empty() ? extent : variant.fault + variant.cause, variant.fault.empty()});
  }
  results.push_back({"rows are complete and finite", fault.empty() ? extent : fault, fault.empty()});
  return results;
}

}  // namespace wd
