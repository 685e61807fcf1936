// compatible.cpp: the table of what excludes what, and what settings use.
#include "src/config/compatible.h"

#include <algorithm>
#include <iterator>

#include "src/base/join.h"
#include "src/config/heads.h"
#include "src/config/numbers.h"
#include "wd/error.h"

namespace wd {
namespace {

constexpr UseName kNames[] = {
#define WD_USE(use, ...) {__VA_ARGS__},
    WD_USES(WD_USE)
#undef WD_USE
};

constexpr const char *kChoicesOnly = "the actions of {role} are choices, and it is for continuous ones",
                     *kNoValues = "{algorithm} learns no values of choices",
                     *kNeedsLayer = "distribution: gsde needs the last hidden layer of fully_connected",
                     *kOneByOne = "input: choices computes values one by one",
                     *kBytesForModules = "streams of uint8 are for modules, which say how to read them",
                     *kMixes = "{algorithm} mixes the values of a team by the state of the game",
                     *kOfState = "{algorithm} learns the value of the state of the game",
                     *kOwnDistribution = "{algorithm} has a distribution of its own";

std::vector<const Role*> roles_in(const PolicySettings& policy, const Spec& spec) {
  std::vector<const Role*> roles;
  for (const Role& role : spec.roles)
    if (contains(policy.roles, role.name)) roles.push_back(&role);
  return roles;
}

// All roles of a policy have the same kind of actions.
void add_roles(Usage& usage, const std::vector<const Role*>& roles) {
  if (roles.empty()) return;
  const Role& first = *roles.front();
  usage.words["role"] = first.name;
  add_actions(usage, first.action);
  usage.uses.add(Use::kNoEntities, first.entities.lists.empty());
  usage.uses.add(Use::kNoChoiceFeatures, first.choice_features.size == 0);
  usage.uses.add(Use::kSeveralReadings, !std::ranges::all_of(roles, [&](const Role* role) {
                   return role->entities == first.entities &&
                          role->choice_features == first.choice_features &&
                          std::ranges::equal(role->observation, first.observation);
                 }));
}

// Of the job, what policies may exclude.
void add_trainer(Usage& usage, const TrainerSettings& trainer) {
  usage.words["straggler_preempt"] = config::format(trainer.straggler_preempt);
  usage.uses.add(Use::kTable, trainer.observations == kTable);
  usage.uses.add(Use::kPreempts, trainer.straggler_preempt > 0.0);
  usage.uses.add(trainer.offline.empty() ? Use::kPlayed : Use::kOffline);
}

}  // namespace

std::vector<Use> Uses::list() const {
  std::vector<Use> all;
  for (int use = 0; use < static_cast<int>(Use::kCount); ++use)
    if (has({static_cast<Use>(use)})) all.push_back(static_cast<Use>(use));
  return all;
}

std::span<const Exclusion> exclusions() {
  using enum Use;  // in here, because settings have values of the same names
  static const Exclusion rows[] = {
      Exclusion(kTable, {kNoTable},
                "this environment has no Spec::table (tag_continuous with env.use_full_observation has one)",
                "leave it at rows"),
      Exclusion(kTf32, {kCpu}, "needs a GPU", "a CPU computes in fp32 or bf16"),
      Exclusion(kNoPoolSize, {kPool}, "must be at least 1 with reset: pool", ""),
      Exclusion(kNoStarts, {kGiven}, "must name a file with reset: given", ""),
      Exclusion(kSquashed, {kDiscrete}, kChoicesOnly, "take gaussian"),
      Exclusion(kSquashed, {kUnbounded}, "the actions of {role} have no bounds to stay within",
                "take gaussian"),
      Exclusion(kGsde, {kDiscrete}, kChoicesOnly, "take gaussian"),
      Exclusion(kBytes, {kNoModule}, kBytesForModules, "take a model.type of your own, or leave them out"),
      Exclusion(kCriticBytes, {kNoModule}, kBytesForModules,
                "take a model.type of your own, or leave them out"),
      Exclusion(kCriticReads, {kValuesOfChoices, kMixesNoState},
                "{algorithm} learns values of choices, and has neither a critic nor a mixer that reads",
                "leave it empty"),
      Exclusion(kReadsOfAgents, {kMixesState, kStateStream}, kMixes,
                "name streams of replicas only, or take VDN or PQN-VDN"),
      Exclusion(
          kReadsOfAgents, {kMixesState, kNoStateStream}, kMixes,
          "this environment has no stream of replicas (Spec::streams; in Python state() and state_space): "
          "take VDN or PQN-VDN"),
      Exclusion(kCriticBytes, {kMixesState},
                "the mixer of a team reads numbers, and this is a stream of uint8", "name another stream"),
      Exclusion(kCriticReads, {kDistributions, kJointValue},
                "the value is an output of the actor's network, and has none of its own",
                "set separate_value: true, or leave it empty"),
      Exclusion(kLocalCritic, {kValuesState, kStateStream}, kOfState,
                "name a stream of replicas, with separate_value: true, or take IPPO"),
      Exclusion(
          kLocalCritic, {kValuesState, kNoStateStream}, kOfState,
          "this environment has no stream of replicas (Spec::streams; in Python state() and state_space): "
          "take IPPO"),
      Exclusion(kStreams, {kChoices}, "descriptions of choices are read from the observation alone",
                "take input: observation, or leave it at [observation]"),
      Exclusion(kModule, {kGsde}, kNeedsLayer, "take that, or distribution: gaussian"),
      Exclusion(kState, {kGsde, kNoModule}, kNeedsLayer, "take that, or distribution: gaussian"),
      Exclusion(kNoHiddenLayer, {kGsde}, "distribution: gsde needs a hidden layer",
                "add one, or take distribution: gaussian"),
      Exclusion(kDueling, {kNoValuesOfChoices}, kNoValues, "take false"),
      Exclusion(kDueling, {kValuesOfChoices, kChoices}, kOneByOne, "take false"),
      Exclusion(kQuantiles, {kDistributions}, kNoValues, "take 1"),
      Exclusion(kQuantiles, {kActors, kDiscrete},
                "the critics of {algorithm} learn the mean value of each choice, and no quantiles", "take 1"),
      Exclusion(kQuantiles, {kMeans}, "{algorithm} learns the mean of a value, and no quantiles", "take 1"),
      Exclusion(kQuantiles, {kValuesOfChoices, kChoices}, kOneByOne, "take 1"),
      Exclusion(kChoices, {kNoValuesOfChoices}, kNoValues, "take observation, or PQN"),
      Exclusion(kValuesOfChoices, {kContinuous},
                "learns the values of choices, and the actions of {role} are continuous", "take A2C or PPO"),
      Exclusion(kSeparateValue, {kValuesOfChoices},
                "{algorithm} learns the values of choices, and none beside them", "take false"),
      Exclusion(kCriticDims, {kNoCritics}, "{algorithm} has no critics of actions", "leave it empty"),
      Exclusion(kCritics, {kUnbounded}, "squashes actions to their bounds, and those of {role} have none",
                "take PPO"),
      Exclusion(kPoints, {kDiscrete}, "learns continuous actions, and those of {role} are choices",
                "take SAC, DQN or PPO"),
      Exclusion(kSeparateValue, {kCritics}, "{algorithm} has critics of actions, and no value of the state",
                "take false"),
      Exclusion(kSquashed, {kPoints}, kOwnDistribution, "leave it at gaussian"),
      Exclusion(kSquashed, {kActors}, kOwnDistribution, "leave it at gaussian, or take gsde for its noise"),
      Exclusion(kGsde, {kPoints}, kOwnDistribution, "leave it at gaussian"),
      Exclusion(kChoices, {kValuesOfChoices, kNoChoiceFeatures},
                "the environment does not describe the choices of {role} (Role::choice_features)",
                "take observation"),
      Exclusion(kChoices, {kValuesOfChoices, kSeveralReadings},
                "its roles observe different things, or describe choices differently",
                "give each role a policy of its own"),
      Exclusion(kState, {kValuesOfChoices, kChoices},
                "has a state, and with input: choices no network has one", "take fully_connected"),
      Exclusion(kNormalizedInput, {kValuesOfChoices, kChoices},
                "columns that describe choices would have units of their own, which input: choices excludes",
                "take false"),
      Exclusion(kTable, {kValuesOfChoices, kChoices},
                "input: choices reads rows (policy.{policy}.model.input)", "take rows"),
      Exclusion(kEntities, {kNoEntities},
                "the environment does not say which entries describe things to {role} (Role::entities)",
                "take observation"),
      Exclusion(kEntities, {kSeveralReadings}, "its roles observe different things",
                "give each role a policy of its own"),
      Exclusion(kModule, {kTable, kObservation}, "reads rows of observations, and no table",
                "set trainer.observations to rows, or model.input to entities"),
      Exclusion(kNormalizedInput, {kTable, kObservation},
                "needs what a row of observations holds, and a table has no rows",
                "set trainer.observations to rows, or model.input to entities"),
      Exclusion(kKeptActivations, {kModule}, "the activations of a module cannot be kept (model.type)",
                "take false"),
      Exclusion(kKeptActivations, {kState, kNoModule},
                "the activations of a network with a state cannot be kept (model.type)", "take false"),
      Exclusion(kState, {kTransitions},
                "{algorithm} learns from transitions one by one, and the network has a state",
                "take a model.type without one, as fully_connected"),
      Exclusion(kBurnIn, {kNoState}, "leads to a state, and the network has none",
                "take 0, or a model.type with one, as gru"),
      Exclusion(kPreempts, {kReplay, kLearns}, "the replay memory of policy.{policy} needs whole rollouts",
                "set trainer.straggler_preempt: 0"),
      Exclusion(kNeedsRecordings, {kLearns, kPlayed}, "learns from recorded transitions",
                "set trainer.offline to a folder that the command `record` wrote"),
      Exclusion(kNeedsPlay, {kLearns, kOffline},
                "learns from what it plays, and with trainer.offline nothing is played",
                "take DQN, SAC, TD3, DDPG or BC, or leave trainer.offline empty"),
      Exclusion(kNormalizedInput, {kLearns, kOffline},
                "takes means from what is played, and with trainer.offline nothing is played", "take false"),
      Exclusion(kStopReturn, {kOffline}, "with trainer.offline nothing is played",
                "set trainer.stop_on: eval and eval.every, or stop_return: none"),
      Exclusion(kStopOnEval, {kNoEvaluation}, "nothing is evaluated",
                "set eval.every to a number of iterations"),
      Exclusion(kOpponent, {kOneRole}, "the environment has one role, which has no opponent", "take none")};
  return rows;
}
const UseName& name_of(Use use) { return kNames[static_cast<std::size_t>(use)]; }

std::string UseName::path(const std::string& policy) const {
  const std::string name = key;
  const bool of_policy = name.find('.') == std::string::npos || name.starts_with("model.");
  return of_policy ? "policy." + policy + "." + name : name;
}

std::string Usage::filled(const char* text) const {
  std::string filled;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t open = std::min(rest.find('{'), rest.size()), close = rest.find('}');
    filled += rest.substr(0, open);
    if (open == rest.size()) break;
    const std::string word(rest.substr(open + 1, close - open - 1));
    const auto found = words.find(word);
    filled += found != words.end() ? found->second : "the " + word;
    rest.remove_prefix(close + 1);
  }
  return filled;
}

std::string Usage::reason_of(const Exclusion& row) const {
  const std::string remedy = filled(row.remedy);
  return filled(row.reason) + (remedy.empty() ? "" : ": " + remedy);
}

std::vector<const Exclusion*> Usage::problems() const {
  std::vector<const Exclusion*> all;
  for (const Exclusion& row : exclusions())
    if (row.applies_to(uses)) all.push_back(&row);
  return all;
}

void add_model(Usage& usage, const ModelSettings& model) {
  if (model.network) usage.words["type"] = model.network->name();
  usage.words["quantiles"] = std::to_string(model.quantiles);
  usage.words["critic_dims"] = "[" + join(model.critic_dims) + "]";
  const auto add = [&](Use use, bool is) { usage.uses.add(use, is); };
  usage.words["reads"] = "[" + join(model.reads) + "]";
  usage.words["critic_reads"] = "[" + join(model.critic_reads) + "]";
  add(Use::kModule, model.is_module());
  add(Use::kNoModule, !model.is_module());
  add(Use::kStreams, model.reads.size() > 1);
  add(Use::kCriticReads, !model.critic_reads.empty());
  add(model.state_size() > 0 ? Use::kState : Use::kNoState, true);
  add(Use::kNoHiddenLayer, !model.network && model.fc_dims.empty());
  add(Use::kObservation, model.input == kObservationInput);
  add(Use::kEntities, model.input == kEntityInput);
  add(Use::kChoices, model.input == kChoiceInput);
  add(Use::kNormalizedInput, model.normalize_input);
  add(Use::kDueling, model.dueling);
  add(Use::kQuantiles, model.quantiles > 1);
  add(Use::kSeparateValue, model.separate_value);
  add(Use::kJointValue, !model.separate_value);
  add(Use::kCriticDims, !model.critic_dims.empty());
  add(Use::kSquashed, model.distribution == kSquashedGaussianActions);
  add(Use::kGsde, model.distribution == kGsdeActions);
}

void add_streams(Usage& usage, const ModelSettings& model, const std::vector<StreamSpec>& streams) {
  usage.uses.add(Use::kReadsOfAgents, std::ranges::any_of(model.read_by(true), [&](const std::string& name) {
                   return std::ranges::none_of(streams, [&](const StreamSpec& stream) {
                     return stream.of == StreamSpec::kReplica && stream.name == name;
                   });
                 }));
  usage.uses.add(Use::kLocalCritic, std::ranges::none_of(streams, [&](const StreamSpec& stream) {
                   return stream.of == StreamSpec::kReplica && contains(model.read_by(true), stream.name);
                 }));
  const bool state = std::ranges::count(streams, StreamSpec::kReplica, &StreamSpec::of) > 0;
  usage.uses.add(state ? Use::kStateStream : Use::kNoStateStream);
  for (const StreamSpec& stream : streams) {
    if (stream.type != StreamSpec::kUint8) continue;
    usage.uses.add(Use::kBytes, contains(model.reads, stream.name));
    usage.uses.add(Use::kCriticBytes, contains(model.critic_reads, stream.name));
  }
}

void add_algorithm(Usage& usage, const AlgorithmSettings& algorithm) {
  const AlgorithmTraits traits = algorithm.traits();
  usage.words["algorithm"] = algorithm.name();
  add_output(usage, traits.output);
  usage.uses.add(Use::kMeans, traits.output != PolicyOutput::kDistribution && !traits.learns_quantiles);
  usage.words["burn_in"] = std::to_string(traits.burn_in);
  usage.uses.add(Use::kReplay, traits.learns_from != LearnsFrom::kPlay);
  usage.uses.add(Use::kTransitions, traits.learns_from != LearnsFrom::kPlay && !traits.windows);
  usage.uses.add(Use::kBurnIn, traits.burn_in > 0);
  usage.uses.add(Use::kNeedsPlay, traits.learns_from == LearnsFrom::kPlay);
  usage.uses.add(Use::kNeedsRecordings, traits.learns_from == LearnsFrom::kRecordings);
  usage.uses.add(Use::kKeptActivations, traits.keeps_activations == kReuseYes);
  usage.uses.add(Use::kValuesState, traits.values_state);
  usage.uses.add(traits.mixer.reads_state() ? Use::kMixesState : Use::kMixesNoState);
}

void add_output(Usage& usage, PolicyOutput output) {
  constexpr Use kOutputs[] = {Use::kDistributions, Use::kValuesOfChoices, Use::kPoints, Use::kActors};
  const Head::Value value = std::ranges::find(Head::all(), output, &Head::output)->value;
  usage.uses.add(kOutputs[static_cast<int>(output)]);
  usage.uses.add(value == Head::kOfCritics ? Use::kCritics : Use::kNoCritics);
  usage.uses.add(Use::kNoValuesOfChoices, value != Head::kOfBestChoice);
}

void add_actions(Usage& usage, const ActionSpace& actions) {
  usage.uses.add(actions.is_continuous() ? Use::kContinuous : Use::kDiscrete);
  usage.uses.add(Use::kUnbounded, actions.is_continuous() && !actions.is_bounded());
}

Usage usage_of(const Config& config, const Spec& spec) {
  Usage usage;
  const TrainerSettings& trainer = config.trainer;
  add_trainer(usage, trainer);
  usage.words["stop_return"] = config::format(trainer.stop_return.value_or(0.0));
  usage.uses.add(Use::kTf32, trainer.precision == kTf32);
  usage.uses.add(Use::kStopReturn, trainer.stop_return && trainer.stop_on == kStopOnTraining);
  usage.uses.add(Use::kStopOnEval, trainer.stop_on == kStopOnEval);
  usage.words["opponent"] = config.eval.opponent;
  usage.uses.add(Use::kNoTable, spec.table.features == 0);
  usage.uses.add(Use::kNoEvaluation, config.eval.every == 0);
  usage.uses.add(Use::kOpponent, !config.eval.opponents().empty());
  usage.uses.add(Use::kOneRole, spec.roles.size() < 2);
  usage.uses.add(Use::kPool, config.env.reset == ResetMode::kPool);
  usage.uses.add(Use::kNoPoolSize, config.env.reset_pool_size == 0);
  usage.uses.add(Use::kGiven, config.env.reset == ResetMode::kGiven);
  usage.uses.add(Use::kNoStarts, config.env.starts.empty());
  return usage;
}

Usage usage_of(const PolicySettings& policy, const Config& config, const Spec& spec) {
  Usage usage;
  usage.words["policy"] = policy.name;
  add_trainer(usage, config.trainer);
  add_roles(usage, roles_in(policy, spec));
  add_model(usage, policy.model);
  add_streams(usage, policy.model, spec.streams);
  add_algorithm(usage, *policy.algorithm);
  usage.uses.add(Use::kLearns, policy.to_train);
  return usage;
}

std::string setting_at(const Config& config, const std::string& path, const std::string& value) {
  const auto origin = config.origins.find(path);
  return concat(origin == config.origins.end() ? "" : origin->second + ": ", path, " = ", value, ": ");
}

void require_compatible(const std::string& policy, const Usage& usage) {
  for (const Exclusion* const row : usage.problems())
    throw UsageError(concat("policy '", policy, "': ", name_of(row->setting).key, " = ",
                            usage.filled(name_of(row->setting).value), ": ", usage.reason_of(*row)));
}

void require_compatible(const Config& config, const Spec& spec, bool gpu) {
  const auto require = [&](const Usage& usage, const std::string& policy) {
    for (const Exclusion* const row : usage.problems()) {
      const UseName& name = name_of(row->setting);
      throw UsageError(setting_at(config, name.path(policy), usage.filled(name.value)) +
                       usage.reason_of(*row));
    }
  };
  Usage job = usage_of(config, spec);
  job.uses.add(Use::kCpu, !gpu);
  require(job, "");
  for (const PolicySettings& policy : config.policies) require(usage_of(policy, config, spec), policy.name);
}

}  // namespace wd
