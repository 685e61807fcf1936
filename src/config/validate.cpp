// validate.cpp: checks settings against each other.
#include <algorithm>

#include "src/base/name.h"
#include "src/config/layers.h"
#include "wd/metrics.h"

namespace wd {
namespace config {
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

// Multiplies a by b. Returns false if the product exceeds 2^63 - 1.
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

// Derives total_steps from num_episodes if it is 0, and rounds it up to whole iterations.
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
    // The value comes from an option: the user may expect that 0 means no limit.
    if (asked != check.places.end() && asked->second.source.starts_with("-")) {
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
  if (env.reset == ResetMode::kPool && env.reset_pool_size == 0) {
    check.fail("env.reset_pool_size", "0", "must be at least 1 with reset: pool");
  }
  if (env.reset == ResetMode::kGiven && env.starts.empty()) {
    check.fail("env.starts", "\"\"", "must name a file with reset: given");
  }
  if (env.reset != ResetMode::kPool && env.reset_pool_size > 0) {
    check.config.notes.push_back("env.reset_pool_size has no effect without reset: pool");
  }
  if (env.reset != ResetMode::kGiven && !env.starts.empty()) {
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

// Decides on auto. Intervals that were left at their defaults, which are numbers of iterations, get defaults
// in environment steps.
void settle_intervals(Checks& check) {
  Config& config = check.config;
  if (config.trainer.intervals == kIntervalsAuto) {
    const bool short_ones = std::ranges::any_of(config.policies, [](const PolicySettings& policy) {
      return policy.to_train && policy.algorithm->has_short_iterations();
    });
    config.trainer.intervals = short_ones ? kIntervalsEnvSteps : kIntervalsIterations;
  }
  if (config.trainer.intervals == kIntervalsIterations) return;
  const auto settle = [&](const char* path, std::int64_t& every, std::int64_t steps) {
    if (!check.places.contains(path)) every = steps;
  };
  settle("saving.metrics_log_freq", config.saving.metrics_log_freq, 5'000);
  settle("saving.model_params_save_freq", config.saving.model_params_save_freq, 1'000'000);
  settle("saving.checkpoint_freq", config.saving.checkpoint_freq, 100'000);
  settle("trainer.canary_freq", config.trainer.canary_freq, 100'000);
}

// Decides on auto, and checks what was asked for.
void check_observations(Checks& check) {
  TrainerSettings& trainer = check.config.trainer;
  const bool entities = std::ranges::all_of(
      check.config.policies, [](const PolicySettings& policy) { return policy.model.input == kEntityInput; });
  if (trainer.observations == kAutoForm)
    trainer.observations = check.spec.table.features > 0 && entities ? kTable : kRows;
  if (trainer.observations == kRows) return;
  const std::string path = "trainer.observations";
  if (check.spec.table.features == 0)
    check.fail(path, "table",
               "this environment has no Spec::table (tag_continuous with env.use_full_observation has one): "
               "leave it at "
               "rows");
}

void check_squashed(Checks& check, const PolicySettings& policy) {
  for (const Role& role : check.spec.roles) {
    if (std::ranges::find(policy.roles, role.name) == policy.roles.end() || role.action.is_bounded())
      continue;
    return check.fail("policy." + policy.name + ".model.distribution", "squashed_gaussian",
                      "the actions of " + role.name +
                          (role.action.is_continuous() ? " have no bounds to stay within: take gaussian"
                                                       : " are choices: it is for continuous ones"));
  }
}

// Noise that is a function of the last hidden layer.
void check_gsde(Checks& check, const PolicySettings& policy) {
  const std::string path = "policy." + policy.name + ".model.";
  for (const Role& role : check.spec.roles)
    if (std::ranges::find(policy.roles, role.name) != policy.roles.end() && !role.action.is_continuous())
      return check.fail(path + "distribution", "gsde",
                        "the actions of " + role.name + " are choices: it is for continuous ones");
  if (policy.model.network)
    check.fail(
        path + "type", policy.model.network->name(),
        "distribution: gsde needs the last hidden layer, which only fully_connected tells: take it, or "
        "distribution: gaussian");
  else if (policy.model.fc_dims.empty())
    check.fail(path + "fc_dims", "[]",
               "distribution: gsde needs a hidden layer: add one, or take distribution: gaussian");
}

bool is_continuous(const Checks& check, const PolicySettings& policy) {
  return std::ranges::any_of(check.spec.roles, [&](const Role& role) {
    return role.action.is_continuous() && std::ranges::find(policy.roles, role.name) != policy.roles.end();
  });
}

// Policies of off-policy actors, which learn from critics of actions.
void check_actor(Checks& check, const PolicySettings& policy) {
  const PolicyOutput output = policy.algorithm->output();
  const std::string path = "policy." + policy.name, name = policy.algorithm->name();
  const ModelSettings& model = policy.model;
  if (output != PolicyOutput::kPoint && output != PolicyOutput::kActor) {
    if (!model.critic_dims.empty())
      check.fail(path + ".model.critic_dims", "", name + " has no critics of actions: leave it empty");
    return;
  }
  for (const Role& role : check.spec.roles) {
    if (std::ranges::find(policy.roles, role.name) == policy.roles.end()) continue;
    if (role.action.is_continuous() && !role.action.is_bounded())
      check.fail(path + ".algorithm", name,
                 "squashes actions to their bounds, and those of " + role.name + " have none: take PPO");
    if (!role.action.is_continuous() && output == PolicyOutput::kPoint)
      check.fail(
          path + ".algorithm", name,
          "learns continuous actions, and those of " + role.name + " are choices: take SAC, DQN or PPO");
  }
  if (model.separate_value)
    check.fail(path + ".model.separate_value", "true",
               name + " has critics of actions, and no value of the state: take false");
  const bool by_state = output == PolicyOutput::kActor && model.distribution == kGsdeActions;
  if (model.distribution != kGaussianActions && !by_state)
    check.fail(path + ".model.distribution", kContinuousDistributionNames[model.distribution],
               name + " has a distribution of its own: leave it at gaussian" +
                   (output == PolicyOutput::kActor ? ", or take gsde for its noise" : ""));
}

// What is for networks of values of choices only.
void check_value_networks(Checks& check, const PolicySettings& policy) {
  const ModelSettings& model = policy.model;
  const std::string path = "policy." + policy.name + ".model.", name = policy.algorithm->name();
  const bool values = policy.algorithm->output() == PolicyOutput::kValues,
             choices = model.input == kChoiceInput;
  const auto fail = [&](const char* key, const std::string& value, const std::string& reason,
                        const char* remedy) {
    check.fail(path + key, value, concat(reason, ": take ", remedy));
  };
  const std::string no_values = name + " learns no values of choices",
                    one_by_one = "input: choices computes values one by one";
  if (model.dueling && (!values || choices))
    fail("dueling", "true", values ? one_by_one : no_values, "false");
  if (model.quantiles > 1) {
    const bool learned = policy.algorithm->learns_quantiles();
    const bool of_actions = learned && policy.algorithm->critics() > 0 && is_continuous(check, policy);
    if (!of_actions && (!values || choices || !learned))
      fail("quantiles", to_string(model.quantiles),
           !values    ? no_values
           : !learned ? name + " learns the mean of a value, and no quantiles"
                      : one_by_one,
           "1");
  }
  if (choices && !values) fail("input", "choices", no_values, "observation, or PQN");
}

void check_values(Checks& check, const PolicySettings& policy) {
  check_value_networks(check, policy);
  if (policy.algorithm->output() != PolicyOutput::kValues) return;
  const std::string path = "policy." + policy.name;
  for (const Role& role : check.spec.roles)
    if (std::ranges::find(policy.roles, role.name) != policy.roles.end() && role.action.is_continuous())
      check.fail(path + ".algorithm", policy.algorithm->name(),
                 "learns the values of choices, and the actions of " + role.name +
                     " are continuous: take A2C or PPO");
  if (policy.model.separate_value)
    check.fail(
        path + ".model.separate_value", "true",
        concat(policy.algorithm->name(), " learns the values of choices, and none beside them: take false"));
}

// Networks that compute the values of choices one by one.
void check_choices(Checks& check, const PolicySettings& policy) {
  const ModelSettings& model = policy.model;
  if (model.input != kChoiceInput || policy.algorithm->output() != PolicyOutput::kValues) return;
  const std::string path = "policy." + policy.name + ".model.";
  for (const Role& role : check.spec.roles)
    if (std::ranges::find(policy.roles, role.name) != policy.roles.end() && role.choice_features.size == 0)
      check.fail(path + "input", "choices",
                 "the environment does not describe the choices of " + role.name +
                     " (Role::choice_features): take observation");
  if (model.state_size() > 0)
    check.fail(path + "type", model.network->name(),
               "has a state, and with input: choices no network has one: take fully_connected");
  if (model.normalize_input)
    check.fail(path + "normalize_input", "true",
               "columns that describe choices would have units of their own, which input: choices excludes: "
               "take false");
  if (check.config.trainer.observations == kTable)
    check.fail("trainer.observations", "table",
               "input: choices reads rows (policy." + policy.name + ".model.input): take rows");
}

// Returns whether a rollout consists of whole sequences.
bool check_sequences(Checks& check, const PolicySettings& policy) {
  const std::int64_t steps = check.config.trainer.rollout_steps(), length = policy.model.sequence_length;
  if (policy.model.state_size() == 0 || length == 0 || steps % length == 0) return true;
  check.fail("policy." + policy.name + ".model.sequence_length", to_string(length),
             "must divide the " + to_string(steps) +
                 " steps of a rollout, trainer.train_batch_size / trainer.num_envs");
  return false;
}

void check_module(Checks& check, const PolicySettings& policy) {
  if (!policy.model.network || !policy.algorithm->keeps_activations()) return;
  check.fail("policy." + policy.name + ".reuse_activations", "true",
             "the activations of a module cannot be kept (model.type): take false");
}

// What follows if nothing is played.
void check_offline(Checks& check) {
  const TrainerSettings& trainer = check.config.trainer;
  for (const PolicySettings& policy : check.config.policies) {
    if (!policy.to_train) continue;
    const std::string path = "policy." + policy.name;
    const LearnsFrom from = policy.algorithm->learns_from();
    if (trainer.offline.empty() && from == LearnsFrom::kRecordings)
      check.fail(path + ".algorithm", policy.algorithm->name(),
                 "learns from recorded transitions: set trainer.offline to a folder that the command "
                 "`record` wrote");
    if (trainer.offline.empty()) continue;
    if (from == LearnsFrom::kPlay)
      check.fail(path + ".algorithm", policy.algorithm->name(),
                 "learns from what it plays, and with trainer.offline nothing is played: take DQN, SAC, TD3, "
                 "DDPG or BC, or "
                 "leave trainer.offline empty");
    if (policy.model.normalize_input)
      check.fail(path + ".model.normalize_input", "true",
                 "takes means from what is played, and with trainer.offline nothing is played: take false");
  }
  if (!trainer.offline.empty() && trainer.stop_return && trainer.stop_on == kStopOnTraining)
    check.fail("trainer.stop_return", to_string(*trainer.stop_return),
               "with trainer.offline nothing is played: set trainer.stop_on: eval and eval.every, or "
               "stop_return: none");
}

void check_evaluation(Checks& check) {
  const EvalSettings& eval = check.config.eval;
  if (check.config.trainer.stop_on == kStopOnEval && eval.every == 0)
    check.fail("trainer.stop_on", "eval", "nothing is evaluated: set eval.every to a number of iterations");
  if (eval.opponent != kOpponentNone && check.spec.roles.size() < 2)
    check.fail("eval.opponent", kOpponentNames[eval.opponent],
               "the environment has one role, which has no opponent");
}

void check_policies(Checks& check) {
  const TrainerSettings& trainer = check.config.trainer;
  bool trains = false;
  for (const PolicySettings& policy : check.config.policies) {
    const std::string path = "policy." + policy.name;
    trains = trains || policy.to_train;
    if (policy.name == kEnvironmentGroup || policy.name == kEvaluationGroup || policy.name == kTimeGroup) {
      check.fail(
          path, "",
          "metrics are called " + policy.name + "/... already: choose another name, with roles: [...]");
    }
    if (policy.model.distribution == kSquashedGaussianActions) check_squashed(check, policy);
    if (policy.model.distribution == kGsdeActions) check_gsde(check, policy);
    check_values(check, policy);
    check_actor(check, policy);
    check_choices(check, policy);
    const bool whole = check_sequences(check, policy);
    TrainingShape shape = training_shape(policy, check.spec, trainer.num_envs, trainer.rollout_steps());
    shape.cuts_rollouts = trainer.straggler_preempt > 0.0;
    shape.offline = !trainer.offline.empty();
    if (!whole) shape.steps_together = 1;
    check_module(check, policy);
    if (!policy.to_train) continue;
    policy.algorithm->check(shape,
                            [&](const std::string& key, const std::string& value, const std::string& reason) {
                              check.fail(path + "." + key, value, reason);
                            });
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

}  // namespace config

TrainingShape training_shape(const PolicySettings& policy, const Spec& spec, std::int64_t num_envs,
                             std::int64_t rollout_steps) {
  TrainingShape shape{.num_envs = num_envs,
                      .rollout_steps = rollout_steps,
                      .time_limit = spec.time_limit,
                      .steps_together = policy.model.steps_together(rollout_steps),
                      .num_agents = 0};
  for (const Role& role : spec.roles)
    if (std::ranges::find(policy.roles, role.name) != policy.roles.end()) shape.num_agents += role.count;
  return shape;
}

namespace config {

void validate(const Spec& spec, Config& config, Problems& problems, Places& places) {
  Checks check{spec, config, problems, places};
  if (check_batch(check)) settle_total_steps(check);
  check_starts(check);
  check_saving(check);
  check_observations(check);
  settle_intervals(check);
  check_policies(check);
  check_offline(check);
  check_evaluation(check);
}

}  // namespace config
}  // namespace wd
