// validate.cpp: what settings demand of one another.
#include "src/config/layers.h"
#include "wd/metrics.h"
#include "wd/name.h"

namespace wd::config {
namespace {

using std::to_string;

struct Checks {
  const Spec& spec;
  Config& config;
  Problems& problems;
  Places& places;

  void fail(const std::string& path, const std::string& value, const std::string& reason) {
    report(problems, places, path, value, reason);
  }
};

// a * b, or false when it exceeds 2^63 - 1.
bool multiply(std::int64_t& a, std::int64_t b) { return !__builtin_mul_overflow(a, b, &a); }

bool check_batch(Checks& check) {
  const TrainerSettings& trainer = check.config.trainer;
  const std::int64_t batch = trainer.train_batch_size, envs = trainer.num_envs;
  if (batch % envs != 0) {
    const std::int64_t below = batch / envs * envs;
    const std::string near =
        below > 0 ? to_string(below) + " or " + to_string(below + envs) : to_string(envs);
    check.fail("trainer.train_batch_size", to_string(batch),
               "must be a multiple of trainer.num_envs = " + to_string(envs) + ", as " + near);
    return false;
  }
  for (const Role& role : check.spec.roles) {
    std::int64_t bytes = batch + envs;  // rows 0..T
    const bool fits = multiply(bytes, role.count) && multiply(bytes, std::max(role.observation_size(), 1)) &&
                      multiply(bytes, static_cast<std::int64_t>(sizeof(float)));
    if (fits) continue;
    check.fail("trainer.train_batch_size", to_string(batch),
               "too large: the observations of " + to_string(role.count) + " agents of role \"" + role.name +
                   "\" are more than 2^63 bytes");
    return false;
  }
  return true;
}

// total_steps from num_episodes, then up to whole iterations.
void settle_total_steps(Checks& check) {
  TrainerSettings& trainer = check.config.trainer;
  std::string path = "trainer.total_steps";
  std::int64_t steps = trainer.total_steps;
  if (steps == 0) {
    path = "trainer.num_episodes";
    steps = trainer.num_episodes;
    if (!multiply(steps, check.spec.time_limit)) {
      return check.fail(
          path, to_string(trainer.num_episodes),
          "too large: episodes of " + to_string(check.spec.time_limit) + " steps make more than 2^63");
    }
    const auto asked = check.places.find("trainer.total_steps");
    if (asked != check.places.end() &&
        asked->second.source.starts_with("-")) {  // an option: somebody expects something of 0
      check.config.notes.push_back(
          "trainer.total_steps = 0 leaves the end to num_episodes: " + to_string(trainer.num_episodes) +
          " episodes of up to " + to_string(check.spec.time_limit) + " steps, " + to_string(steps) +
          " steps in all; give --max_seconds or the steps that you want");
    }
    const auto place = check.places.find(path);
    if (place != check.places.end()) check.places["trainer.total_steps"] = Place(place->second);
  }
  const std::int64_t batch = trainer.train_batch_size;
  const std::int64_t iterations = steps / batch + (steps % batch != 0);
  std::int64_t whole = iterations;
  if (!multiply(whole, batch) || static_cast<double>(whole) > TrainerSettings::kSteps.high) {
    return check.fail(
        path, to_string(path == "trainer.total_steps" ? steps : trainer.num_episodes),
        "too large: more than " + format_bound(TrainerSettings::kSteps.high) + " environment steps");
  }
  if (whole != steps && check.places.contains(path)) {
    check.config.notes.push_back("trainer.total_steps = " + to_string(steps) + " is rounded up to " +
                                 to_string(whole) + ": " + to_string(iterations) + " iterations of " +
                                 to_string(batch) + " steps");
  }
  trainer.total_steps = whole;
}

void check_starts(Checks& check) {
  const EnvSettings& env = check.config.env;
  if (env.reset == kResetPool && env.reset_pool_size == 0) {
    check.fail("env.reset_pool_size", "0", "must be at least 1 with reset: pool");
  }
  if (env.reset == kResetGiven && env.starts.empty()) {
    check.fail("env.starts", "\"\"", "must name a file with reset: given");
  }
  if (env.reset != kResetPool && env.reset_pool_size > 0) {
    check.config.notes.push_back("env.reset_pool_size has no effect without reset: pool");
  }
  if (env.reset != kResetGiven && !env.starts.empty()) {
    check.config.notes.push_back("env.starts has no effect without reset: given");
  }
}

void check_saving(Checks& check) {
  for (const auto& [key, name] : {std::pair("saving.name", check.config.saving.name),
                                  std::pair("saving.tag", check.config.saving.tag)}) {
    if (name.empty() || is_name(name)) continue;
    check.fail(key, '"' + printable(name) + '"', "must be 1 to 100 letters, digits, dots, _ and -, or empty");
  }
}

void check_observations(Checks& check) {
  const TrainerSettings& trainer = check.config.trainer;
  if (trainer.observations == kRows) return;
  const std::string path = "trainer.observations";
  if (check.spec.table.features == 0)
    check.fail(
        path, "table",
        "this environment declares no table that all rows follow from, as one does in which everybody sees "
        "everybody (tag_continuous with env.use_full_observation): leave it at rows");
  if (trainer.precision == kBf16)
    check.fail(path, "table",
               "a table is float32: set trainer.precision to fp32 or tf32, or leave it at rows");
}

void note_unused_ppo_keys(const PolicySettings& policy, Config& config) {
  const PolicySettings unset;
  std::string keys;
  const auto name = [&](bool changed, const char* key) {
    if (changed) keys += (keys.empty() ? "" : ", ") + std::string(key);
  };
  name(policy.clip_param != unset.clip_param, "clip_param");
  name(policy.vf_clip_param != unset.vf_clip_param, "vf_clip_param");
  name(policy.target_kl != unset.target_kl, "target_kl");
  name(policy.num_epochs != unset.num_epochs, "num_epochs");
  name(policy.num_minibatches != unset.num_minibatches, "num_minibatches");
  if (!keys.empty())
    config.notes.push_back("without effect, as policy \"" + policy.name + "\" is not PPO: " + keys);
}

// What nothing bootstraps must end within the rollout.
void check_whole_episodes(Checks& check, const PolicySettings& policy) {
  const std::string path = "policy." + policy.name + ".algorithm";
  const TrainerSettings& trainer = check.config.trainer;
  const std::int64_t least = 2 * std::int64_t{check.spec.time_limit};
  if (trainer.rollout_steps() < least) {
    const std::int64_t envs = trainer.train_batch_size / least;
    check.fail(
        path, "REINFORCE",
        "learns from episodes that must end within a rollout, and " + to_string(trainer.rollout_steps()) +
            " steps of each replica are less than twice the " + to_string(check.spec.time_limit) +
            " of the longest: set trainer.train_batch_size to at least " +
            to_string(least * trainer.num_envs) +
            (envs > 0 ? " or trainer.num_envs to at most " + to_string(envs) : "") + ", or take A2C or PPO");
  }
  if (trainer.straggler_preempt > 0.0)
    check.fail(path, "REINFORCE",
               "needs whole rollouts, which trainer.straggler_preempt cuts short: set that to 0");
}

void check_normalize_return(Checks& check, const PolicySettings& policy) {
  if (!policy.normalize_return || policy.algorithm == kReinforce) return;
  if (policy.n_step == 0 && policy.gae_lambda == 1.0) return;
  check.fail(
      "policy." + policy.name + ".normalize_return", "true",
      "excludes " +
          (policy.n_step > 0 ? "n_step = " + to_string(policy.n_step)
                             : "gae_lambda = " + format(policy.gae_lambda)) +
          ", which adds raw rewards to values of normalized returns at every step: set gae_lambda: 1 and "
          "n_step: 0, or normalize_return: false");
}

void check_policies(Checks& check) {
  bool trains = false;
  for (const PolicySettings& policy : check.config.policies) {
    const std::string path = "policy." + policy.name;
    trains = trains || policy.to_train;
    if (policy.name == kEnvironmentGroup || policy.name == kTimeGroup) {
      check.fail(
          path, "",
          "metrics are called " + policy.name + "/... already: choose another name, with roles: [...]");
    }
    if (policy.n_step > 0 && policy.gae_lambda != 1.0) {
      check.fail(
          path + ".n_step", to_string(policy.n_step),
          "excludes gae_lambda = " + format(policy.gae_lambda) + ": set one of n_step: 0, gae_lambda: 1");
    }
    check_normalize_return(check, policy);
    if (policy.algorithm == kReinforce && policy.to_train) check_whole_episodes(check, policy);
    if (policy.algorithm != kPpo) {
      note_unused_ppo_keys(policy, check.config);
    } else if (policy.num_minibatches > check.config.trainer.train_batch_size) {
      check.fail(
          path + ".num_minibatches", to_string(policy.num_minibatches),
          "must be at most trainer.train_batch_size = " + to_string(check.config.trainer.train_batch_size));
    }
    if (policy.reuse_activations && policy.updates_per_rollout() > 1) {
      check.fail(path + ".reuse_activations", "true",
                 "needs an update of one step: an algorithm other than PPO, or num_epochs: 1 and "
                 "num_minibatches: 1");
    }
  }
  if (!trains) check.fail("policy", "", "no policy learns: one must have to_train: true");
}

}  // namespace

void report(Problems& problems, const Places& places, const std::string& path, const std::string& value,
            const std::string& reason) {
  const auto found = places.find(path);
  problems.add(found == places.end() ? Place{} : found->second, value.empty() ? path : path + " = " + value,
               reason);
}

void validate(const Spec& spec, Config& config, Problems& problems, Places& places) {
  Checks check{spec, config, problems, places};
  if (check_batch(check)) settle_total_steps(check);
  check_starts(check);
  check_saving(check);
  check_observations(check);
  check_policies(check);
}

}  // namespace wd::config
