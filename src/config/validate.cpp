// validate.cpp: checks settings against each other.
#include <algorithm>
#include <cmath>
#include <optional>

#include "src/base/join.h"
#include "src/base/name.h"
#include "src/base/suggest.h"
#include "src/config/compatible.h"
#include "src/config/layers.h"
#include "src/config/numbers.h"
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

// Decides on replicas and batch where they are not given: those that the algorithm usually has, and of
// several algorithms those of the longest rollouts.
void settle_shape(Checks& check) {
  std::optional<UsualShape> usual;
  for (const PolicySettings& policy : check.config.policies) {
    if (!policy.to_train) continue;
    const UsualShape shape = policy.algorithm->usual_shape(check.spec.time_limit);
    if (!usual || shape.rollout_steps > usual->rollout_steps) usual = shape;
  }
  if (!usual) return;
  TrainerSettings& trainer = check.config.trainer;
  if (!check.places.contains("trainer.num_envs")) trainer.num_envs = usual->num_envs;
  if (!check.places.contains("trainer.train_batch_size"))
    trainer.train_batch_size = trainer.num_envs * usual->rollout_steps;
}

// Decides what critics and mixers read that must read the state of the game and were told nothing: all
// streams of replicas; MAPPO's critic also what its agent observes, and which one it is.
void settle_critics(Checks& check) {
  for (PolicySettings& policy : check.config.policies) {
    const AlgorithmTraits traits = policy.algorithm->traits();
    const bool mixes = traits.mixer.reads_state();
    ModelSettings& model = policy.model;
    if (!(mixes || (traits.values_state && model.separate_value)) || !model.critic_reads.empty() ||
        check.places.contains("policy." + policy.name + ".model.critic_reads"))
      continue;
    for (const StreamSpec& stream : check.spec.streams)
      if (stream.of == StreamSpec::kReplica &&
          (stream.type == StreamSpec::kFloat32 || (model.network && !mixes)))
        model.critic_reads.push_back(stream.name);
    if (mixes || model.critic_reads.empty()) continue;
    model.critic_reads.insert(model.critic_reads.begin(), InputPart::kObservation);
    if (num_agents_of(policy, check.spec) > 1) model.critic_reads.emplace_back(InputPart::kAgentId);
  }
}

bool check_batch(Checks& check) {
  const TrainerSettings& trainer = check.config.trainer;
  const std::int64_t batch = trainer.train_batch_size, envs = trainer.num_envs;
  if (batch % envs != 0) {
    const std::int64_t below = batch / envs * envs;
    check.fail("trainer.train_batch_size", to_string(batch),
               concat("must be a multiple of trainer.num_envs = ", envs, ", as ",
                      below > 0 ? concat(below, " or ", below + envs) : to_string(envs)));
    return false;
  }
  for (const Role& role : check.spec.roles) {
    std::int64_t bytes = batch + envs;  // rows 0..T
    const bool fits = multiply(bytes, role.count) && multiply(bytes, std::max(role.observation_size(), 1)) &&
                      multiply(bytes, static_cast<std::int64_t>(sizeof(float)));
    if (fits) continue;
    check.fail("trainer.train_batch_size", to_string(batch),
               concat("too large: the observations of ", role.count, " agents of role \"", role.name,
                      "\" are more than 2^63 bytes"));
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
          concat("too large: episodes of ", check.spec.time_limit, " steps make more than 2^63"));
    }
    const auto asked = check.places.find("trainer.total_steps");
    // The value comes from an option: the user may expect that 0 means no limit.
    if (asked != check.places.end() && asked->second.source.starts_with("-")) {
      check.config.notes.push_back(
          concat("trainer.total_steps = 0 leaves the end to num_episodes: ", trainer.num_episodes,
                 " episodes of up to ", check.spec.time_limit, " steps, ", steps,
                 " steps in all; give --max_seconds or the steps that you want"));
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
    check.config.notes.push_back(concat("trainer.total_steps = ", steps, " is rounded up to ", whole, ": ",
                                        iterations, " iterations of ", batch, " steps"));
  }
  trainer.total_steps = whole;
}

// A mixer is of one policy: policies that mix beside one another are teams that know nothing of each other.
void note_teams(Checks& check) {
  std::vector<std::string> teams;
  bool alone = false;
  std::string name;
  for (const PolicySettings& policy : check.config.policies) {
    if (!policy.to_train || policy.algorithm->traits().mixer.kind == Mixer::kNone) continue;
    const int agents = num_agents_of(policy, check.spec);
    alone = alone || agents == 1;
    name = policy.algorithm->name();
    teams.push_back(concat(policy.name, " (", agents, agents == 1 ? " agent)" : " agents)"));
  }
  if (teams.size() > 1 || alone)
    check.config.notes.push_back(concat(
        name, " mixes the agents of one policy, and here ", join(teams),
        teams.size() == 1 ? " is a team by itself" : " are teams by themselves",
        ": one team of all needs equal spaces and one policy, as policy={all: {roles: [...]}} gives, or, of "
        "games in Python, env.one_role=true"));
}

void note_starts(Checks& check) {
  const EnvSettings& env = check.config.env;
  if (env.reset != ResetMode::kPool && env.reset_pool_size > 0) {
    check.config.notes.push_back("env.reset_pool_size has no effect without reset: pool");
  }
  const std::vector<int>& moves = env.played_moves;
  if (env.reset == ResetMode::kPlayed && (moves.size() != 2 || moves[0] > moves[1]))
    check.fail(
        "env.played_moves",
        moves.size() == 2 ? concat('[', moves[0], ", ", moves[1], ']') : concat(moves.size(), " numbers"),
        "must be the least and the most steps, as [0, 8]");
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
      return policy.to_train && policy.algorithm->traits().short_iterations;
    });
    config.trainer.intervals = short_ones ? kIntervalsEnvSteps : kIntervalsIterations;
  }
  if (config.trainer.intervals == kIntervalsIterations) {
    const bool in_python = config.name.find(':') != std::string::npos;  // an iteration may take a minute
    if (in_python && !check.places.contains("saving.metrics_log_freq")) config.saving.metrics_log_freq = 1;
    return;
  }
  const auto settle = [&](const char* path, std::int64_t& every, std::int64_t steps) {
    if (!check.places.contains(path)) every = steps;
  };
  settle("saving.metrics_log_freq", config.saving.metrics_log_freq, 5'000);
  settle("saving.model_params_save_freq", config.saving.model_params_save_freq, 1'000'000);
  settle("saving.checkpoint_freq", config.saving.checkpoint_freq, 100'000);
  settle("trainer.canary_freq", config.trainer.canary_freq, 100'000);
}

// Decides on auto.
void settle_observations(Checks& check) {
  TrainerSettings& trainer = check.config.trainer;
  const bool entities = std::ranges::all_of(
      check.config.policies, [](const PolicySettings& policy) { return policy.model.input == kEntityInput; });
  if (trainer.observations == kAutoForm)
    trainer.observations = check.spec.table.features > 0 && entities ? kTable : kRows;
}

// What the table of src/config/compatible.cpp excludes.
void check_compatible(Checks& check, const Usage& usage, const std::string& policy) {
  for (const Exclusion* const row : usage.problems()) {
    const UseName& name = name_of(row->setting);
    check.fail(name.path(policy), usage.filled(name.value), usage.reason_of(*row));
  }
}

// Returns whether a rollout consists of whole sequences.
bool check_sequences(Checks& check, const PolicySettings& policy) {
  const std::int64_t steps = check.config.trainer.rollout_steps(), length = policy.model.sequence_length;
  const bool windows = policy.algorithm->traits().learns_from != LearnsFrom::kPlay;
  if (policy.model.state_size() == 0 || length == 0 || windows || steps % length == 0) return true;
  check.fail(
      "policy." + policy.name + ".model.sequence_length", to_string(length),
      concat("must divide the ", steps, " steps of a rollout, trainer.train_batch_size / trainer.num_envs"));
  return false;
}

// Whether networks read what there is, each once.
void check_reads(Checks& check, const PolicySettings& policy) {
  std::vector<std::string> known = {InputPart::kObservation};
  for (const StreamSpec& stream : check.spec.streams) known.push_back(stream.name);
  known.emplace_back(InputPart::kAgentId);
  const auto check_names = [&](const char* key, const std::vector<std::string>& reads, std::string reason) {
    for (std::size_t k = 0; k < reads.size(); ++k) {
      if (!contains(known, reads[k]))
        reason = concat("'", reads[k], "' is not to be read in this environment, which has ", join(known),
                        did_you_mean(reads[k], known));
      else if (std::ranges::count(reads, reads[k]) > 1)
        reason = concat("names '", reads[k], "' twice");
    }
    if (!reason.empty())
      check.fail("policy." + policy.name + ".model." + key, concat('[', join(reads), ']'), reason);
  };
  const std::vector<std::string>&reads = policy.model.reads, &of_critic = policy.model.critic_reads;
  const bool observes = !reads.empty() && reads.front() == known.front();
  check_names("reads", reads, observes ? "" : "must begin with observation");
  check_names("critic_reads", of_critic,
              of_critic == std::vector<std::string>{InputPart::kAgentId}
                  ? "must name more, as the observation or a stream"
                  : "");
}

void check_policies(Checks& check) {
  const TrainerSettings& trainer = check.config.trainer;
  bool trains = false;
  for (const PolicySettings& policy : check.config.policies) {
    const std::string path = "policy." + policy.name;
    trains = trains || policy.to_train;
    if (policy.average > 0.0 && !policy.to_train)
      check.fail(path + ".average", format_bound(policy.average),
                 "weights that do not change have no average: leave it out, or set to_train: true");
    if (policy.num_opponents() > 0 && !trainer.offline.empty())
      check.fail("opponents." + policy.name, shown(policy.opponents),
                 "nothing is played with trainer.offline: leave it out");
    if (policy.name == kEnvironmentGroup || policy.name == kEvaluationGroup || policy.name == kTimeGroup) {
      check.fail(
          path, "",
          "metrics are called " + policy.name + "/... already: choose another name, with roles: [...]");
    }
    check_compatible(check, usage_of(policy, check.config, check.spec), policy.name);
    check_reads(check, policy);
    const bool whole = check_sequences(check, policy);
    TrainingShape shape = training_shape(policy, check.spec, trainer.num_envs, trainer.rollout_steps());
    shape.cuts_rollouts = trainer.straggler_preempt > 0.0;
    shape.offline = !trainer.offline.empty();
    if (!whole) shape.steps_together = 1;
    if (!policy.to_train || shape.num_agents < 1) continue;  // its agents are wrong, which was reported
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

void validate(const Spec& spec, Config& config, Problems& problems, Places& places) {
  Checks check{spec, config, problems, places};
  settle_shape(check);
  settle_critics(check);
  if (check_batch(check)) settle_total_steps(check);
  note_starts(check);
  note_teams(check);
  check_saving(check);
  settle_observations(check);
  check_compatible(check, usage_of(check.config, check.spec), "");
  settle_intervals(check);
  check_policies(check);
}

}  // namespace config

double highest_entropy(const ActionSpace& actions) {
  double entropy = actions.components() * std::log(2.0);
  for (const int choices : actions.heads) entropy += std::log(choices);
  return entropy;
}

TrainingShape training_shape(const PolicySettings& policy, const Spec& spec, std::int64_t num_envs,
                             std::int64_t rollout_steps) {
  TrainingShape shape{.num_envs = num_envs,
                      .rollout_steps = rollout_steps,
                      .time_limit = spec.time_limit,
                      .steps_together = policy.steps_together(rollout_steps),
                      .num_agents = config::num_agents_of(policy, spec)};
  for (const Role& role : spec.roles)
    if (contains(policy.roles, role.name)) shape.highest_entropy = highest_entropy(role.action);
  return shape;
}

}  // namespace wd
