// setup.h: turns options into an environment and its configuration, in the same way for every command.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/cli/arguments.h"
#include "wd/config.h"
#include "wd/detail/membership.h"
#include "wd/device.h"
#include "wd/environment.h"
#include "wd/experiment.h"

namespace wd::cli {

// An option that is short for a setting: `--seed 3` is `--set trainer.seed=3`.
struct Shorthand {
  const char* option;
  const char* path;
};

// The options, as text, that choose an environment and its configuration.
class ConfigOptions {
 public:
  // Adds --env, --config, --algorithm, --set, --device, --threads, and the given shorthands.
  void add_to(Arguments& arguments, const std::vector<Shorthand>& shorthands = {});
  // Adds ENV, a word that means the same as --env.
  void add_word(Arguments& arguments);
  // Takes ENV as the environment. Throws UsageError if it is none, or if --env is given too.
  void take_word(const Arguments& arguments);
  // Throws UsageError if an environment is needed and neither --env nor --config was given.
  ConfigSources sources(bool environment_needed = true) const;

  std::string env, file, algorithm;
  bool trusted = false;

 private:
  struct Value {
    Shorthand shorthand;
    std::string text;
  };
  std::string setting_hint(const std::string& name, const std::string& value, bool near) const;

  std::string word_;
  std::vector<std::string> set_;
  std::vector<std::unique_ptr<Value>> values_;
};

// Quotes text as a YAML value, whatever characters it contains.
std::string yaml_text(const std::string& text);

// All environments that this program has, but those in Python.
std::vector<std::string> environment_names();

// Loads the configuration, sets the number of threads, and selects the device. A worker gets its share of the
// machine's threads and devices. Throws UsageError.
Experiment load_setup(const ConfigSources& sources, const Membership& self = {});

// The stream `state` of a game in Python is not asked for if no network reads it: it may be large, or not
// exist behind the end of a game.
void leave_unread_state_out(Experiment& setup);

// What the lists of opponents mean now, by policy and entry: {"runner": {"runs/a": "/home/me/runs/a, weights
// 0123456789abcdef"}}.
nlohmann::ordered_json opponents_of(const Experiment& setup);

// Throws UsageError that names the program if a run, or a checkpoint, needs an environment or a network that
// this program does not have.
void check_program_of(const std::filesystem::path& folder);

}  // namespace wd::cli
