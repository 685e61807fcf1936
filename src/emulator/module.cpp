// module.cpp: one step of an environment on the emulated GPU, for the program that loaded the module.
#include "wd/emulator/module.h"

#include <exception>

#include "src/emulator/draws.h"
#include "src/emulator/races.h"
#include "wd/error.h"

namespace wd::emulation {

namespace {

RaceAccess access_of(const Race::Access& access) {
  RaceAccess found{.what = access.what, .line = access.line.empty() ? access.phase : access.line};
  found.who = access.item < 0    ? concat("thread ", access.thread)
              : access.other < 0 ? concat("f(", access.item, ")")
                                 : concat("f(", access.item, ", ", access.other, ")");
  return found;
}

}  // namespace

std::optional<StepFault> step(const CudaExecutor& executor, const void* params, const StateLayout& layout,
                              const StepView& view, const StepOptions& options) {
  set_order(options.order, options.seed);
  set_opt_in_shared(options.in_place ? 0 : kMaxSharedBytes);
  Races::instance().enable(options.races);
  Draws::instance().enable(options.repeated != nullptr);
  std::optional<StepFault> fault;
  try {
    executor.step(params, layout, view, nullptr);
  } catch (const Race& race) {
    fault = StepFault{race.what(), race.address(), access_of(race.first()), access_of(race.second())};
  } catch (const std::exception& error) {
    fault = StepFault{.text = error.what()};
  }
  Races::instance().enable(false);
  if (options.repeated != nullptr) *options.repeated = Draws::instance().repeated();
  Draws::instance().enable(false);
  set_opt_in_shared(kMaxSharedBytes);
  return fault;
}

}  // namespace wd::emulation
