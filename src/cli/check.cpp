// check.cpp: `wdtrain check`: runs checks of an environment and prints one line per check.
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "src/cli/check_algorithm.h"
#include "src/cli/check_python.h"
#include "src/cli/output.h"
#include "src/cli/setup.h"
#include "src/outside/python.h"
#include "src/replicas/check/checks.h"
#include "src/replicas/check/faults.h"
#include "src/replicas/check/watchdog.h"
#include "src/report/format.h"
#include "wd/outside.h"

namespace wd::cli {
namespace {

constexpr double kMinPatience = 5.0;  // [s], so that a slow machine is not taken for an endless loop
constexpr const char* kEnding = "every call ends";
std::string checked_name;  // name of the environment or the algorithm, also for signal handlers

// Says what has faults. Returns the exit code.
int judged(bool passed) {
  if (!passed) print(checked_name + " has faults\n");
  return passed ? 0 : 1;
}

[[noreturn]] void end_now(const CheckResult& result) {
  print(check_line("FAILED", result));
  ::_exit(judged(false));
}

// Prints each result as it arrives. Returns false if a check failed.
bool run_checks(const Experiment& setup, const CheckOptions& options) {
  bool passed = true;
  const auto show = [&](const CheckResult& result) { passed = cli::show(result) && passed; };
  const Environment& environment = *setup.environment;
  show(check_spec(environment));
  show(check_settings(*setup.environment));
  if (!passed) return false;
  const double patience = std::max(options.seconds, kMinPatience);
  const Watchdog watchdog(patience, [&](const std::string& what) {
    end_now(
        {kEnding,
         concat(what, ": has not ended for ", patience,
                " s; is there an endless loop? Or does code between phases read what a phase writes, so that "
                "threads take different ways? (--seconds N waits longer)"),
         false});
  });
  on_other_faults([](int signal) {
    end_now({"memory faults",
             concat(signal == SIGFPE ? "an integer is divided by 0" : "a segmentation fault",
                    " outside of the guarded memory"),
             false});
  });
  show(check_bounds(environment, options));
  if (!passed) {
    print(check_line("skipped", {"all other checks", "what is overwritten would decide on them"}));
    return false;
  }
  for (const CheckResult& result : check_orders(environment, options)) show(result);
  for (const auto& check : {check_rewards, check_resets, check_copies, check_derive})
    show(check(environment, options));
  const ObservationReport observed = check_observations(environment, options);
  show(observed.result);
  for (const CheckResult& part : observed.parts) print(check_line("", part));
  const std::vector<CheckResult> emulated = check_races(environment, options);
  for (const CheckResult& result : emulated) show(result);
  if (emulated.empty()) {
    print(check_line("skipped",
                     {"the emulated GPU", concat("there is no ", environment.emulated(),
                                                 ", which ./wd build or CMake's target `all` builds")}));
  }
  if (setup.device.is_cuda()) {
    show(check_devices(environment, options));
  } else {
    print(check_line("skipped", {"same bits: CPU and GPU", "no GPU is used"}));
  }
  show({kEnding, concat("within ", patience, " s")});
  return passed;
}

// An environment in Python that cannot be made is a result of the check, and not an error of the
// configuration: `fault` then says why.
Experiment load_to_check(const ConfigSources& sources, std::string& fault) {
  return load_environment(sources, [&](Environment& environment) {
    outside::leave_statistics_out(environment);
    try {
      return environment.spec();
    } catch (const UsageError& error) {
      fault = error.what();
      return Spec{
          .roles = {
              {.name = "agent", .observation = {{"observation"}}, .action = ActionSpace::discrete({2})}}};
    }
  });
}

bool run_python_checks(const Environment& environment, const std::string& fault,
                       const CheckOptions& options) {
  const bool fits = fault.empty();
  show({"wdtrain can train in it", fits ? report::counted(environment.layout().num_agents, "agent") : fault,
        fits});
  if (!fits) print(check_line("skipped", {"all other checks", "they need an environment that can be made"}));
  return fits && check_python(environment, options);
}

}  // namespace

int check(const CommandLine& line) {
  Arguments arguments(
      line, "check",
      "Test an environment: order of agents, completeness of rows, resets, state, devices. In "
      "Python: returns, seeds, ends. --algorithm: test the algorithm instead.");
  ConfigOptions options;
  CheckOptions extent;
  AgainstOptions against;
  options.add_word(arguments);
  options.add_to(arguments, {{"--seed", "trainer.seed"}});
  arguments.number("--steps", extent.steps, {1, 1e6}, "INT", "steps of random play (300)");
  arguments.number("--seconds", extent.seconds, above(0.0, 1e6), "NUMBER",
                   "time after which long checks stop early (10)");
  arguments.option(
      "--against", against.original, "NAME",
      "compare with the original in Python, step by step: gym:ID, pettingzoo:MODULE, MODULE:FUNCTION");
  arguments.option("--kwargs", against.kwargs, "JSON", "arguments of the function that makes the original");
  arguments.option("--state", against.state, "MODULE:FUNCTION",
                   "function of the original that returns its state: {field: number or list}");
  arguments.flag("--drift", against.drift,
                 "take over the original's state only where episodes begin, not after every step");
  arguments.number("--rtol", against.rtol, {0.0, 1.0}, "NUMBER",
                   "relative difference that is allowed (1e-4)");
  arguments.number("--atol", against.atol, {0.0, 1e6}, "NUMBER",
                   "absolute difference that is allowed (1e-4)");
  if (!arguments.parse()) return 0;
  options.take_word(arguments);
  if (!options.algorithm.empty()) {
    if (!against.original.empty())
      throw UsageError(
          "--algorithm and --against exclude each other: one checks an algorithm, the other an environment");
    checked_name = options.algorithm;
    return judged(check_algorithm(options.sources(false)));
  }
  const ConfigSources sources = options.sources();
  std::string fault;
  const Experiment found = load_to_check(sources, fault);
  if (is_python_environment(found.config.name)) {
    checked_name = found.config.name;
    if (!against.original.empty())
      throw UsageError(concat("--against ", against.original,
                              ": it is compared with an environment of ours, and ", checked_name,
                              " is one in Python"));
    extent.seed = static_cast<std::uint64_t>(found.config.trainer.seed);
    return judged(run_python_checks(*found.environment, fault, extent));
  }
  const Experiment setup = load_setup(sources);
  checked_name = setup.environment->name();
  if (dynamic_cast<const OutsideEnvironment*>(setup.environment.get()) != nullptr)
    throw UsageError(
        concat("environment ", checked_name, ": its game lives elsewhere, and cannot be checked"));
  extent.seed = static_cast<std::uint64_t>(setup.config.trainer.seed);
  extent.observation_type = setup.config.trainer.storage().type;
  return judged(against.original.empty() ? run_checks(setup, extent)
                                         : check_against(*setup.environment, against, extent));
}

}  // namespace wd::cli
