// compatible.h: what excludes what: one table, which the loader, the constructors, the tests and
// docs/configuration.md read.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "wd/config.h"

namespace wd {

// What a configuration uses, of a policy or of the whole job. compatible.cpp says which setting each is.
// Each with its setting, value and words, as UseName has them.
// clang-format off
#define WD_USES(WD_USE)                                                                                     \
  /* The network of a policy. */                                                                            \
  WD_USE(kModule, "model.type", "{type}", "a module of your own")                                           \
  WD_USE(kState, "model.type", "{type}", "a network with a state")                                          \
  WD_USE(kNoState, "model.type", "{type}", "a network without a state")                                     \
  WD_USE(kNoHiddenLayer, "model.fc_dims", "[]", "")                                                         \
  WD_USE(kNoModule, "model.type", "no module of your own", "")                                              \
  WD_USE(kStreams, "model.reads", "{reads}", "more than the observation")                                   \
  WD_USE(kBytes, "model.reads", "{reads}", "a stream of uint8")                                             \
  WD_USE(kCriticReads, "model.critic_reads", "{critic_reads}", "not empty")                                 \
  WD_USE(kCriticBytes, "model.critic_reads", "{critic_reads}", "a stream of uint8")                         \
  WD_USE(kLocalCritic, "model.critic_reads", "{critic_reads}", "no stream of replicas")                     \
  WD_USE(kReadsOfAgents, "model.critic_reads", "{critic_reads}", "more than streams of replicas")           \
  WD_USE(kObservation, "model.input", "observation", "")                                                    \
  WD_USE(kEntities, "model.input", "entities", "")                                                          \
  WD_USE(kChoices, "model.input", "choices", "")                                                            \
  WD_USE(kNormalizedInput, "model.normalize_input", "true", "")                                             \
  WD_USE(kDueling, "model.dueling", "true", "")                                                             \
  WD_USE(kQuantiles, "model.quantiles", "{quantiles}", "more than one")                                     \
  WD_USE(kSeparateValue, "model.separate_value", "true", "")                                                \
  WD_USE(kJointValue, "model.separate_value", "false", "")                                                  \
  WD_USE(kCriticDims, "model.critic_dims", "{critic_dims}", "not empty")                                    \
  WD_USE(kSquashed, "model.distribution", "squashed_gaussian", "")                                          \
  WD_USE(kGsde, "model.distribution", "gsde", "")                                                           \
  /* Its algorithm. Each has one of the first four. */                                                      \
  WD_USE(kDistributions, "algorithm", "{algorithm}", "of distributions and values of states")               \
  WD_USE(kValuesOfChoices, "algorithm", "{algorithm}", "of values of choices")                              \
  WD_USE(kPoints, "algorithm", "{algorithm}", "of points")                                                  \
  WD_USE(kActors, "algorithm", "{algorithm}", "of actors that draw")                                        \
  WD_USE(kNoValuesOfChoices, "algorithm", "{algorithm}", "of no values of choices")                         \
  WD_USE(kCritics, "algorithm", "{algorithm}", "with critics of actions")                                   \
  WD_USE(kNoCritics, "algorithm", "{algorithm}", "without critics of actions")                              \
  WD_USE(kMeans, "algorithm", "{algorithm}", "that learns no quantiles")                                    \
  WD_USE(kReplay, "algorithm", "{algorithm}", "with a replay memory")                                       \
  WD_USE(kTransitions, "algorithm", "{algorithm}", "that learns from transitions one by one")               \
  WD_USE(kBurnIn, "burn_in", "{burn_in}", "not 0")                                                          \
  WD_USE(kNeedsPlay, "algorithm", "{algorithm}", "that needs play")                                         \
  WD_USE(kNeedsRecordings, "algorithm", "{algorithm}", "that needs recordings")                             \
  WD_USE(kValuesState, "algorithm", "{algorithm}", "of the state of the game")                              \
  WD_USE(kMixesState, "algorithm", "{algorithm}", "that mixes values by the state of the game")             \
  WD_USE(kMixesNoState, "algorithm", "{algorithm}", "that mixes no values by the state of the game")        \
  WD_USE(kKeptActivations, "reuse_activations", "true", "")                                                 \
  WD_USE(kLearns, "to_train", "true", "")                                                                   \
  /* Its roles. */                                                                                          \
  WD_USE(kDiscrete, "", "", "discrete actions")                                                             \
  WD_USE(kContinuous, "", "", "continuous actions")                                                         \
  WD_USE(kUnbounded, "", "", "continuous actions without bounds")                                           \
  WD_USE(kNoEntities, "", "", "roles without `Role::entities`")                                             \
  WD_USE(kNoChoiceFeatures, "", "", "roles without `Role::choice_features`")                                \
  WD_USE(kSeveralReadings, "", "", "roles that observe different things")                                   \
  WD_USE(kStateStream, "", "", "an environment with a stream of replicas")                                  \
  WD_USE(kNoStateStream, "", "", "an environment without a stream of replicas")                             \
  /* The job. */                                                                                            \
  WD_USE(kTable, "trainer.observations", "table", "")                                                       \
  WD_USE(kNoTable, "", "", "an environment without `Spec::table`")                                          \
  WD_USE(kTf32, "trainer.precision", "tf32", "")                                                            \
  WD_USE(kCpu, "", "", "a CPU")                                                                             \
  WD_USE(kPreempts, "trainer.straggler_preempt", "{straggler_preempt}", "not 0")                            \
  WD_USE(kOffline, "trainer.offline", "a folder", "a folder")                                               \
  WD_USE(kPlayed, "trainer.offline", "\"\"", "")                                                            \
  WD_USE(kStopReturn, "trainer.stop_return", "{stop_return}", "of training")                                \
  WD_USE(kStopOnEval, "trainer.stop_on", "eval", "")                                                        \
  WD_USE(kNoEvaluation, "eval.every", "0", "")                                                              \
  WD_USE(kOpponent, "eval.opponent", "{opponent}", "not none")                                              \
  WD_USE(kOneRole, "", "", "an environment with one role")                                                  \
  WD_USE(kPool, "env.reset", "pool", "")                                                                    \
  WD_USE(kNoPoolSize, "env.reset_pool_size", "0", "")                                                       \
  WD_USE(kGiven, "env.reset", "given", "")                                                                  \
  WD_USE(kNoStarts, "env.starts", "\"\"", "")
// clang-format on

enum class Use {
#define WD_USE(use, ...) use,
  WD_USES(WD_USE) kCount
#undef WD_USE
};

class Uses {
 public:
  Uses() = default;
  Uses(std::initializer_list<Use> uses) {
    for (const Use use : uses) add(use);
  }
  void add(Use use, bool is = true) { bits_ |= is ? std::uint64_t{1} << static_cast<int>(use) : 0; }
  void add(Uses others) { bits_ |= others.bits_; }
  bool has(Uses others) const { return (bits_ & others.bits_) == others.bits_; }
  std::vector<Use> list() const;

 private:
  static_assert(static_cast<int>(Use::kCount) <= 64);
  std::uint64_t bits_ = 0;
};

// A row of the table: these cannot be used together. Texts may have words in braces, as {algorithm}.
struct Exclusion {
  Use setting;  // the one that a refusal names
  Uses others;
  const char* reason;
  const char* remedy;

  bool applies_to(const Uses& uses) const { return uses.has({setting}) && uses.has(others); }
};
std::span<const Exclusion> exclusions();

// How a use is called: its setting, "model.dueling" of a policy or "trainer.precision", with its value; or in
// words, what the setting is empty for.
struct UseName {
  const char *key, *value, *words;
  std::string path(const std::string& policy) const;  // "policy.NAME.model.dueling", of a policy's settings
};
const UseName& name_of(Use use);

// What is used, and the words that texts about it are filled with.
struct Usage {
  Uses uses;
  std::map<std::string, std::string> words;

  std::string filled(const char* text) const;
  std::string reason_of(const Exclusion& row) const;  // with the remedy
  std::vector<const Exclusion*> problems() const;
};

// What a network, an algorithm, the kind of outputs that it needs, or an action uses.
void add_model(Usage& usage, const ModelSettings& model);
// What networks use of the streams that an environment has.
void add_streams(Usage& usage, const ModelSettings& model, const std::vector<StreamSpec>& streams);
void add_algorithm(Usage& usage, const AlgorithmSettings& algorithm);
void add_output(Usage& usage, PolicyOutput output);
void add_actions(Usage& usage, const ActionSpace& actions);
// What a policy, or a whole job without its policies, uses. The device counts only where it is known.
Usage usage_of(const Config& config, const Spec& spec);
Usage usage_of(const PolicySettings& policy, const Config& config, const Spec& spec);

// How a refusal begins: "PLACE: path = value: ", or without the place of a default.
std::string setting_at(const Config& config, const std::string& path, const std::string& value);

// Throw UsageError with the first problem. Of a policy with this name:
void require_compatible(const std::string& policy, const Usage& usage);
// Of a job and all its policies, on a CPU or a GPU.
void require_compatible(const Config& config, const Spec& spec, bool gpu);

}  // namespace wd
