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
enum class Use {
  // The network of a policy.
  kModule,
  kState,
  kNoHiddenLayer,
  kObservation,
  kEntities,
  kChoices,
  kNormalizedInput,
  kDueling,
  kQuantiles,
  kSeparateValue,
  kCriticDims,
  kSquashed,
  kGsde,
  // Its algorithm. Each has one of the first four.
  kDistributions,
  kValuesOfChoices,
  kPoints,
  kActors,
  kNoValuesOfChoices,
  kCritics,
  kNoCritics,
  kMeans,
  kReplay,
  kNeedsPlay,
  kNeedsRecordings,
  kKeptActivations,
  kLearns,
  // Its roles.
  kDiscrete,
  kContinuous,
  kUnbounded,
  kNoEntities,
  kNoChoiceFeatures,
  kSeveralReadings,
  // The job.
  kTable,
  kNoTable,
  kTf32,
  kCpu,
  kPreempts,
  kOffline,
  kPlayed,
  kStopReturn,
  kStopOnEval,
  kNoEvaluation,
  kOpponent,
  kOneRole,
  kPool,
  kNoPoolSize,
  kGiven,
  kNoStarts,
  kCount
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
