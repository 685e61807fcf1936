// check.cpp: `wdtrain check`: runs checks of an environment and prints one line per check.
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "src/cli/output.h"
#include "src/cli/setup.h"
#include "src/replicas/check/checks.h"
#include "src/replicas/check/faults.h"
#include "src/replicas/check/watchdog.h"

namespace wd::cli {
namespace {

std::string line_of(const char* verdict, const CheckResult& result) {
  constexpr int kWidth = 36;  // the longest name plus two
  return concat(run::padded(verdict, -9), run::padded(result.name, -kWidth), result.detail, "\n");
}

constexpr double kMinPatience = 5.0;  // [s], so that a slow machine is not taken for an endless loop
constexpr const char* kEnding = "every call ends";
std::string crashed_name;  // name of the environment, for signal handlers

[[noreturn]] void end_now(const CheckResult& result, const std::string& environment) {
  print(line_of("FAILED", result) + environment + " has faults\n");
  ::_exit(1);
}

// Prints each result as it arrives. Returns false if a check failed.
bool run_checks(const Experiment& setup, const CheckOptions& options) {
  bool passed = true;
  const auto show = [&](const CheckResult& result) {
    print(line_of(!result.passed ? "FAILED" : result.warns ? "warning" : "ok", result));
    passed = passed && result.passed;
  };
  const Environment& environment = *setup.environment;
  show(check_spec(environment));
  if (!passed) return false;
  const double patience = std::max(options.seconds, kMinPatience);
  const Watchdog watchdog(patience, [&](const std::string& what) {
    end_now({kEnding,
             concat(what, ": has not ended for ", patience,
                    " s; is there an endless loop? (--seconds N waits longer)"),
             false},
            std::string(setup.environment->name()));
  });
  crashed_name = setup.environment->name();
  on_other_faults([](int signal) {
    end_now({"memory faults",
             concat(signal == SIGFPE ? "an integer is divided by 0" : "a segmentation fault",
                    " outside of the guarded memory"),
             false},
            crashed_name);
  });
  show(check_bounds(environment, options));
  if (!passed) {
    print(line_of("skipped", {"all other checks", "what is overwritten would decide on them"}));
    return false;
  }
  for (const CheckResult& result : check_orders(environment, options)) show(result);
  for (const auto& check : {check_rewards, check_resets, check_copies, check_derive})
    show(check(environment, options));
  if (const auto races = check_races(environment, options)) {
    show(*races);
  } else {
    print(line_of("skipped",
                  {"the emulated GPU", concat("there is no ", environment.emulated(),
                                              ", which ./wd build or CMake's target `all` builds")}));
  }
  if (setup.device.is_cuda()) {
    show(check_devices(environment, options));
  } else {
    print(line_of("skipped", {"same bits: CPU and GPU", "no GPU is used"}));
  }
  show({kEnding, concat("within ", patience, " s")});
  return passed;
}

}  // namespace

int check(const CommandLine& line) {
  Arguments arguments(line, "check",
                      "Test an environment: order of agents, completeness of rows, resets, state, devices.");
  ConfigOptions options;
  CheckOptions extent;
  options.add_to(arguments, {{"--seed", "trainer.seed"}});
  arguments.number("--steps", extent.steps, {1, 1e6}, "INT", "steps of random play (300)");
  arguments.number("--seconds", extent.seconds, above(0.0, 1e6), "NUMBER",
                   "time after which long checks stop early (10)");
  if (!arguments.parse()) return 0;
  const Experiment setup = load_setup(options.sources());
  extent.seed = static_cast<std::uint64_t>(setup.config.trainer.seed);
  extent.observation_type = setup.config.trainer.storage().type;
  if (run_checks(setup, extent)) return 0;
  print(std::string(setup.environment->name()) + " has faults\n");
  return 1;
}

}  // namespace wd::cli
