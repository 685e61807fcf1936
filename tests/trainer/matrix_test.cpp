// matrix_test.cpp: short trainings in which every pair of features occurs that the program does not refuse.
// Each makes the updates that its settings announce and takes the memory that was computed for it.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "src/autoscale/memory_needed.h"
#include "src/rollout/minibatches.h"
#include "tests/support.h"
#include "tests/trainer/held_bytes.h"
#include "wd/error.h"
#include "wd/trainer.h"

namespace wd {
namespace {

enum Dimension {
  kNetwork,
  kSequences,
  kNorm,
  kValue,
  kAlgorithm,
  kPrecision,
  kStorage,
  kActions,
  kMasks,
  kPolicies,
  kUnits,
  kInput,
  kActivations,
  kDimensions
};

// By dimension. `whole` and `short`: a network with a state learns from whole rollouts or from shorter
// sequences. `frozen`: the second of two policies does not train. `values`, `rewards`: these are normalized.
// `entities`, `pooled`: networks read the nearest things, or also embeddings of all. `kept`: the rollout
// keeps activations for the update.
const std::array<std::vector<std::string>, kDimensions> kFeatures = {
    {{"flat", "one", "two", "gru"},
     {"whole", "short"},
     {"plain", "norm"},
     {"joint", "separate"},
     {"a2c", "ppo", "reinforce", "pqn", "dqn", "td3", "sac"},
     {"fp32", "bf16"},
     {"rows", "table"},
     {"choice", "heads", "gaussian", "squashed", "gsde"},
     {"free", "masked"},
     {"shared", "two", "frozen"},
     {"raw", "values", "rewards"},
     {"observation", "entities", "pooled"},
     {"computed", "kept"}}};

using Combination = std::array<int, kDimensions>;  // an index for each dimension
using FeaturePair = std::array<int, 4>;  // a dimension and its feature, a later dimension and its feature

const std::string& name_of(int dimension, int feature) {
  return kFeatures[static_cast<std::size_t>(dimension)][static_cast<std::size_t>(feature)];
}

const std::string& feature(const Combination& features, Dimension d) { return name_of(d, features[d]); }

std::string name_of(const Combination& features) {
  std::string name;
  for (int d = 0; d < kDimensions; ++d)
    name += (d > 0 ? "_" : "") + name_of(d, features[static_cast<std::size_t>(d)]);
  return name;
}

std::string name_of(const FeaturePair& pair) {
  return name_of(pair[0], pair[1]) + " with " + name_of(pair[2], pair[3]);
}

// Pairs of features, with a fast test of membership.
class PairSet {
 public:
  bool contains(const FeaturePair& pair) const { return has_[index(pair)]; }
  void set(const FeaturePair& pair, bool here) { has_[index(pair)] = here; }
  bool empty() const { return std::ranges::find(has_, true) == has_.end(); }

 private:
  static constexpr int kMost = 7;  // features of a dimension
  static std::size_t index(const FeaturePair& pair) {
    return static_cast<std::size_t>(((pair[0] * kMost + pair[1]) * kDimensions + pair[2]) * kMost + pair[3]);
  }

  std::vector<bool> has_ = std::vector<bool>(kDimensions * kMost * kDimensions * kMost);
};

template <typename F>
void each_pair(const Combination& features, const F& f) {
  for (int d = 0; d < kDimensions; ++d)
    for (int e = d + 1; e < kDimensions; ++e)
      f(FeaturePair{d, features[static_cast<std::size_t>(d)], e, features[static_cast<std::size_t>(e)]});
}

// All combinations, in order.
std::vector<Combination> all_combinations() {
  std::vector<Combination> all = {{}};
  for (std::size_t d = 0; d < kDimensions; ++d) {
    std::vector<Combination> longer;
    for (const Combination& features : all) {
      for (std::size_t k = 0; k < kFeatures[d].size(); ++k) {
        longer.push_back(features);
        longer.back()[d] = static_cast<int>(k);
      }
    }
    all = std::move(longer);
  }
  return all;
}

// Whether the program trains with these. TheProgramRefusesWhatNoTrainingCovers tests that it refuses others.
bool is_allowed(const Combination& features) {
  const auto is = [&](Dimension d, const char* name) { return feature(features, d) == name; };
  const bool recurs = is(kNetwork, "gru");
  const bool continuous = is(kActions, "gaussian") || is(kActions, "squashed") || is(kActions, "gsde");
  if (recurs && (is(kNorm, "norm") || (is(kStorage, "table") && is(kInput, "observation")))) return false;
  if (!recurs && is(kSequences, "short")) return false;
  const bool of_values = is(kAlgorithm, "pqn") || is(kAlgorithm, "dqn");
  if (of_values && (is(kValue, "separate") || continuous || !is(kUnits, "raw"))) return false;
  const bool of_critics = is(kAlgorithm, "td3") || is(kAlgorithm, "sac");
  if (of_critics && (is(kValue, "separate") || is(kActions, "squashed") || !is(kUnits, "raw"))) return false;
  if (is(kAlgorithm, "td3") && (!continuous || is(kActions, "gsde"))) return false;
  if ((is(kAlgorithm, "dqn") || of_critics) && recurs) return false;
  if (is(kAlgorithm, "reinforce") && is(kUnits, "values")) return false;
  const bool steps_once = is(kAlgorithm, "a2c") || is(kAlgorithm, "reinforce");
  if (is(kActivations, "kept") && (recurs || !steps_once)) return false;
  if (is(kActions, "gsde") && (recurs || is(kNetwork, "flat"))) return false;
  return !continuous || is(kMasks, "free");
}

std::vector<Combination> allowed_combinations() {
  std::vector<Combination> all = all_combinations();
  std::erase_if(all, [](const Combination& features) { return !is_allowed(features); });
  return all;
}

PairSet pairs_of(const std::vector<Combination>& combinations) {
  PairSet pairs;
  for (const Combination& features : combinations)
    each_pair(features, [&](const FeaturePair& pair) { pairs.set(pair, true); });
  return pairs;
}

// A small selection with the same pairs: again and again the first combination that adds the most pairs.
std::vector<Combination> covering(const std::vector<Combination>& combinations) {
  std::vector<Combination> chosen;
  for (PairSet left = pairs_of(combinations); !left.empty();) {
    const auto added = [&](const Combination& features) {
      int count = 0;
      each_pair(features, [&](const FeaturePair& pair) { count += left.contains(pair) ? 1 : 0; });
      return count;
    };
    chosen.push_back(*std::ranges::max_element(combinations, {}, added));
    each_pair(chosen.back(), [&](const FeaturePair& pair) { left.set(pair, false); });
  }
  return chosen;
}

// 140 steps of a replica, 28 sequences of 5 steps or 7 whole ones: most do not divide into the minibatches.
constexpr int kReplicas = 7, kSteps = 20;

std::string policy_text(const Combination& features) {
  const std::map<std::string, std::string> algorithms = {{"a2c", "A2C"},
                                                         {"ppo", "PPO, num_epochs: 2, num_minibatches: 6"},
                                                         {"reinforce", "REINFORCE"},
                                                         {"pqn", "PQN, num_epochs: 3, num_minibatches: 5"},
                                                         {"dqn",
                                                          "DQN, batch_size: 140, replay_ratio: 1, "
                                                          "learning_starts: 0, buffer_size: 300, "
                                                          "prioritized: true, n_step: 2"},
                                                         {"td3",
                                                          "TD3, batch_size: 140, replay_ratio: 1, "
                                                          "learning_starts: 0, buffer_size: 300, "
                                                          "noise_damping: 0.5"},
                                                         {"sac",
                                                          "SAC, batch_size: 140, replay_ratio: 1, "
                                                          "learning_starts: 0, buffer_size: 300"}};
  const std::map<std::string, std::string> networks = {{"flat", "fc_dims: []"},
                                                       {"one", "fc_dims: [13]"},
                                                       {"two", "fc_dims: [24, 10]"},
                                                       {"gru", "type: gru, width: 9"}};
  std::string model = networks.at(feature(features, kNetwork));
  if (feature(features, kSequences) == "short") model += ", sequence_length: 5";
  if (feature(features, kNorm) == "norm") model += ", layer_norm: true";
  if (feature(features, kValue) == "separate") model += ", separate_value: true";
  if (feature(features, kActions) == "squashed") model += ", distribution: squashed_gaussian";
  if (feature(features, kActions) == "gsde") model += ", distribution: gsde, noise_every: 3";
  if (feature(features, kInput) != "observation") model += ", input: entities, nearest: 2";
  if (feature(features, kInput) == "pooled") model += ", pool: mean_max, attention: 1, embedding: 6";
  const std::map<std::string, std::string> units = {
      {"raw", ""}, {"values", "normalize_value: true, "}, {"rewards", "normalize_reward: true, "}};
  return concat(
      "algorithm: ", algorithms.at(feature(features, kAlgorithm)), ", ", units.at(feature(features, kUnits)),
      feature(features, kActivations) == "kept" ? "reuse_activations: true, " : "", "model: {", model, "}");
}

std::vector<std::string> settings_of(const Combination& features) {
  const std::string &actions = feature(features, kActions), &policies = feature(features, kPolicies);
  const std::string policy = policy_text(features);
  return {concat("trainer.num_envs=", kReplicas),
          concat("trainer.train_batch_size=", kReplicas * kSteps),
          concat("trainer.precision=", feature(features, kPrecision)),
          concat("trainer.observations=", feature(features, kStorage)),
          concat("env.kind=", actions == "choice" || actions == "heads" ? actions : "box"),
          concat("env.masks=", feature(features, kMasks) == "masked" ? "true" : "false"),
          policies == "shared" ? concat("policy={shared: {", policy, "}}")
                               : concat("policy={few: {", policy, "}, many: {",
                                        policies == "frozen" ? "to_train: false, " : "", policy, "}}")};
}

// [bytes] of the order in which minibatches are gathered, which memory_needed() leaves out.
double order_bytes(int count, std::int64_t length, bool of_sequences) {
  const std::int64_t units = (kSteps / length * kReplicas + count - 1) / count;
  const std::int64_t numbers = count * units + (of_sequences ? units * length + units : 0);
  return static_cast<double>(numbers) * sizeof(std::int64_t);
}

// Every number of the parameters belongs to a tensor, except padding to 16 bytes at the end.
void expect_no_waste(const Policy& policy) {
  const auto* const begin = policy.parameters().const_data_ptr<float>();
  std::int64_t end = 0;
  for (const auto& [name, tensor, per_replica] : policy.named_parameters()) {
    std::int64_t last = tensor.const_data_ptr<float>() - begin;
    for (std::int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
    end = std::max(end, last + 1);
  }
  const std::int64_t padding = policy.parameters().numel() - end;
  EXPECT_TRUE(0 <= padding && padding < 8) << padding << " numbers after the last parameter";
}

void expect_updates(Trainer& trainer, const Config& config) {
  const MetricsRow row = trainer.take_metrics();
  const std::map<std::string, double> metrics(row.values().begin(), row.values().end());
  for (const PolicySettings& policy : config.policies) {
    EXPECT_EQ(metrics.at(policy.name + "/updates"),
              policy.to_train ? policy.algorithm->updates_per_rollout() : 0)
        << "updates of " << policy.name;
    EXPECT_EQ(metrics.at(policy.name + "/empty_minibatches"), 0) << policy.name;
  }
}

class Matrix : public testing::TestWithParam<Combination> {};

TEST_P(Matrix, MakesTheUpdatesAndTakesTheMemoryThatWereAnnounced) {
  CountingMemory memory;
  const Experiment setup = make_setup("crowd", settings_of(GetParam()));
  const Config& config = setup.config;
  const double before = memory.held();
  Trainer trainer(config, *setup.environment, {});
  for (int k = 0; k < 2; ++k) {
    ASSERT_TRUE(trainer.iterate());
    expect_updates(trainer, config);
  }
  const scaling::MemoryNeeded needed = scaling::memory_needed(config, *setup.environment, 1);
  EXPECT_LE(needed.total(), memory.held() - before) << "training needs less than `at least`";
  EXPECT_EQ(needed.observations, observation_bytes(trainer.trajectory()));
  EXPECT_EQ(needed.other_buffers, held_bytes(trainer.trajectory()) - observation_bytes(trainer.trajectory()));
  EXPECT_EQ(needed.replicas,
            2.0 * held_bytes(trainer.replicas().blocks()) + held_bytes(trainer.replicas().dropped()))
      << "now, and as the rollout began; dropped rewards";
  EXPECT_EQ(needed.networks, network_bytes(trainer));
  // tests/trainer/replay_test.cpp counts replay memories.
  if (!trainer.has_memory()) {
    EXPECT_EQ(needed.algorithms, algorithm_bytes(trainer));
  }
  double gathered = 0.0;
  for (std::size_t p = 0; p < config.policies.size(); ++p) {
    const Policy& policy = trainer.policies()[p];
    expect_no_waste(policy);
    const Sequences sequences = policy.sequences(kSteps);
    const int count = config.policies[p].algorithm->minibatches();
    const double others = memory.held();
    const Minibatches minibatches(trainer.trajectory().policies()[p], kSteps, kReplicas, count, 0, sequences);
    if (memory.held() > others)
      gathered +=
          memory.held() - others - order_bytes(count, std::max(sequences.length, 1), sequences.length > 0);
  }
  EXPECT_EQ(needed.minibatches, gathered);
}

INSTANTIATE_TEST_SUITE_P(Cover, Matrix, testing::ValuesIn(covering(allowed_combinations())),
                         [](const auto& info) { return name_of(info.param); });

// What the matrix leaves out, no configuration can have.
TEST(MatrixTest, TheProgramRefusesWhatNoTrainingCovers) {
  const std::vector<Combination> all = all_combinations(), chosen = covering(allowed_combinations());
  EXPECT_LE(chosen.size(), 34U);
  const PairSet covered = pairs_of(chosen);
  std::set<std::string> refused;
  for (const Combination& features : all) {
    each_pair(features, [&](const FeaturePair& pair) {
      if (covered.contains(pair) || !refused.insert(name_of(pair)).second) return;
      for (std::size_t network = 0; network < kFeatures[kNetwork].size(); ++network) {
        Combination refused_one = {static_cast<int>(network)};
        refused_one[static_cast<std::size_t>(pair[0])] = pair[1];
        refused_one[static_cast<std::size_t>(pair[2])] = pair[3];
        EXPECT_THROW(
            {
              const Experiment setup = make_setup("crowd", settings_of(refused_one));
              Trainer(setup.config, *setup.environment, {});
            },
            UsageError)
            << name_of(refused_one);
      }
    });
  }
  EXPECT_EQ(refused,
            (std::set<std::string>{
                "flat with short",       "one with short",    "two with short",    "gru with norm",
                "short with norm",       "separate with pqn", "pqn with gaussian", "separate with dqn",
                "dqn with gaussian",     "dqn with squashed", "dqn with values",   "dqn with rewards",
                "gru with dqn",          "short with dqn",    "dqn with kept",     "pqn with squashed",
                "reinforce with values", "pqn with values",   "pqn with rewards",  "gaussian with masked",
                "squashed with masked",  "gru with kept",     "short with kept",   "ppo with kept",
                "pqn with kept",         "separate with td3", "td3 with choice",   "td3 with heads",
                "td3 with squashed",     "td3 with masked",   "td3 with values",   "td3 with rewards",
                "gru with td3",          "short with td3",    "td3 with kept",     "separate with sac",
                "sac with squashed",     "sac with values",   "sac with rewards",  "gru with sac",
                "short with sac",        "sac with kept",     "flat with gsde",    "gru with gsde",
                "short with gsde",       "pqn with gsde",     "dqn with gsde",     "gsde with masked",
                "td3 with gsde"}));
}

// Modules read a table only as lists of things.
TEST(MatrixTest, TheProgramRefusesModulesThatReadATable) {
  Combination features = {};
  features[kNetwork] = 3;
  features[kStorage] = 1;
  EXPECT_EQ(name_of(features),
            "gru_whole_plain_joint_a2c_fp32_table_choice_free_shared_raw_observation_computed");
  const Experiment setup = make_setup("crowd", settings_of(features));
  EXPECT_THROW(Trainer(setup.config, *setup.environment, {}), UsageError);
}

}  // namespace
}  // namespace wd
