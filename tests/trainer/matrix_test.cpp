// matrix_test.cpp: short trainings in which every pair of features occurs that the program does not refuse.
// Each makes the updates that its settings announce and takes the memory that was computed for it.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "src/autoscale/memory_needed.h"
#include "src/config/compatible.h"
#include "src/recorded/recording.h"
#include "src/rollout/minibatches.h"
#include "tests/game/saved_run.h"
#include "tests/stepped_gru.h"
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
  kInputUnits,
  kValues,
  kActivations,
  kSource,
  kDimensions
};

// By dimension. `whole` and `short`: a network with a state learns from whole rollouts or from shorter
// sequences. `frozen`: the second of two policies does not train. `values`, `rewards`: these are normalized.
// `entities`, `pooled`: networks read the nearest things, or also embeddings of all; `scaled`: in units of
// their means and deviations. `dueling`, `quantiles`: how values are computed. `kept`: the rollout keeps
// activations for the update. `recorded`: what it learns from was played before.
const std::array<std::vector<std::string>, kDimensions> kFeatures = {
    {{"flat", "one", "two", "gru", "mingru", "lstm"},
     {"whole", "short"},
     {"plain", "norm"},
     {"joint", "separate"},
     {"a2c", "ppo", "reinforce", "pqn", "dqn", "ddpg", "td3", "sac", "bc", "qmix", "pqn-qmix"},
     {"fp32", "bf16"},
     {"rows", "table"},
     {"choice", "heads", "gaussian", "squashed", "gsde"},
     {"free", "masked"},
     {"shared", "two", "frozen"},
     {"raw", "values", "rewards"},
     {"observation", "entities", "pooled"},
     {"unscaled", "scaled"},
     {"means", "dueling", "quantiles"},
     {"computed", "kept"},
     {"played", "recorded"}}};

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
  std::ranges::replace(name, '-', '_');
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
  static constexpr int kMost = 11;  // features of a dimension
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

AlgorithmChoice algorithm_of(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  return AlgorithmChoice::named(name);
}

// What a policy with this feature uses.
Uses uses_of(int dimension, int index) {
  static const std::map<std::string, Uses> uses = {{"flat", {Use::kNoHiddenLayer}},
                                                   {"gru", {Use::kState, Use::kNoModule}},
                                                   {"mingru", {Use::kState, Use::kNoModule}},
                                                   {"lstm", {Use::kState, Use::kNoModule}},
                                                   {"separate", {Use::kSeparateValue}},
                                                   {"table", {Use::kTable}},
                                                   {"choice", {Use::kDiscrete}},
                                                   {"heads", {Use::kDiscrete}},
                                                   {"gaussian", {Use::kContinuous}},
                                                   {"squashed", {Use::kContinuous, Use::kSquashed}},
                                                   {"gsde", {Use::kContinuous, Use::kGsde}},
                                                   {"observation", {Use::kObservation}},
                                                   {"entities", {Use::kEntities}},
                                                   {"pooled", {Use::kEntities}},
                                                   {"scaled", {Use::kNormalizedInput}},
                                                   {"dueling", {Use::kDueling}},
                                                   {"quantiles", {Use::kQuantiles}},
                                                   {"kept", {Use::kKeptActivations}},
                                                   {"played", {Use::kPlayed, Use::kLearns}},
                                                   {"recorded", {Use::kOffline, Use::kLearns}}};
  const std::string& name = name_of(dimension, index);
  if (dimension == kAlgorithm) {
    Usage usage;
    add_algorithm(usage, *algorithm_of(name));
    return usage.uses;
  }
  const auto found = uses.find(name);
  return found == uses.end() ? Uses{} : found->second;
}

constexpr int kOpen = -1;  // a dimension without a feature yet

bool has_setting(const std::string& algorithm, const std::string& setting) {
  static std::map<std::string, std::set<std::string>> known;
  std::set<std::string>& names = known[algorithm];
  PolicySettings policy;
  policy.algorithm = algorithm_of(algorithm);
  if (names.empty())
    for (const FieldInfo& field : list_fields([&](Fields& fields) { policy.describe(fields); }))
      names.insert(field.name);
  return names.contains(setting);
}

// Whether the program trains with these: the table allows it, and there are such settings.
// TheProgramRefusesWhatNoTrainingCovers tests that it refuses others. The features may be part of a
// combination.
bool is_allowed(const Combination& features) {
  Usage usage;
  for (int d = 0; d < kDimensions; ++d)
    if (const int index = features[static_cast<std::size_t>(d)]; index != kOpen)
      usage.uses.add(uses_of(d, index));
  if (!usage.problems().empty()) return false;
  const auto is = [&](Dimension d, const char* name) {
    return features[d] != kOpen && feature(features, d) == name;
  };
  const auto lacks = [&](const char* setting) {
    return features[kAlgorithm] != kOpen && !has_setting(feature(features, kAlgorithm), setting);
  };
  const bool recurs = is(kNetwork, "gru") || is(kNetwork, "mingru") || is(kNetwork, "lstm"),
             layers = features[kNetwork] != kOpen && !recurs;
  const bool continuous = is(kActions, "gaussian") || is(kActions, "squashed") || is(kActions, "gsde");
  if (layers && is(kSequences, "short")) return false;
  if (is(kUnits, "values") && lacks("normalize_value")) return false;
  if (is(kUnits, "rewards") && lacks("normalize_reward")) return false;
  if (is(kActivations, "kept") && (is(kAlgorithm, "ppo") || lacks("reuse_activations"))) return false;
  return !continuous || !is(kMasks, "masked");
}

// Pairs of features, and which of them the combinations chosen so far have.
struct Cover {
  PairSet covered;
  std::vector<Combination> chosen;
  std::vector<FeaturePair> impossible;  // that no allowed combination has

  int gain(const Combination& features, int d, int index) const {
    int gain = 0;
    for (int e = 0; e < kDimensions; ++e) {
      const int other = features[static_cast<std::size_t>(e)];
      if (e == d || other == kOpen) continue;
      const FeaturePair pair = d < e ? FeaturePair{d, index, e, other} : FeaturePair{e, other, d, index};
      gain += covered.contains(pair) ? 0 : 1;
    }
    return gain;
  }

  // Fills the open dimensions from `d` on, first with the features that make the most new pairs. Returns
  // false if no allowed combination has these features.
  bool complete(Combination& features, int d = 0) const {
    if (!is_allowed(features)) return false;
    while (d < kDimensions && features[static_cast<std::size_t>(d)] != kOpen) ++d;
    if (d == kDimensions) return true;
    std::vector<int> order(kFeatures[static_cast<std::size_t>(d)].size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater(), [&](int index) { return gain(features, d, index); });
    for (const int index : order) {
      features[static_cast<std::size_t>(d)] = index;
      if (complete(features, d + 1)) return true;
    }
    features[static_cast<std::size_t>(d)] = kOpen;
    return false;
  }

  void add(const FeaturePair& pair) {
    if (covered.contains(pair)) return;
    Combination features;
    features.fill(kOpen);
    features[static_cast<std::size_t>(pair[0])] = pair[1];
    features[static_cast<std::size_t>(pair[2])] = pair[3];
    if (!complete(features)) return impossible.push_back(pair);
    chosen.push_back(features);
    each_pair(features, [&](const FeaturePair& p) { covered.set(p, true); });
  }
};

const Cover& cover() {
  static const Cover all = [] {
    Cover cover;
    for (int d = 0; d < kDimensions; ++d)
      for (int e = d + 1; e < kDimensions; ++e)
        for (int f = 0; f < static_cast<int>(kFeatures[static_cast<std::size_t>(d)].size()); ++f)
          for (int g = 0; g < static_cast<int>(kFeatures[static_cast<std::size_t>(e)].size()); ++g)
            cover.add({d, f, e, g});
    return cover;
  }();
  return all;
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
                                                         {"ddpg",
                                                          "DDPG, batch_size: 140, replay_ratio: 1, "
                                                          "learning_starts: 0, buffer_size: 300"},
                                                         {"td3",
                                                          "TD3, batch_size: 140, replay_ratio: 1, "
                                                          "learning_starts: 0, buffer_size: 300, "
                                                          "noise_damping: 0.5"},
                                                         {"sac",
                                                          "SAC, batch_size: 140, replay_ratio: 1, "
                                                          "learning_starts: 0, buffer_size: 300"},
                                                         {"bc", "BC, batch_size: 140, replay_ratio: 1"},
                                                         {"qmix",
                                                          "QMIX, batch_size: 140, replay_ratio: 1, "
                                                          "learning_starts: 0, buffer_size: 300, n_step: 2"},
                                                         {"pqn-qmix",
                                                          "PQN-QMIX, num_epochs: 3, num_minibatches: 5, "
                                                          "mixer_dim: 3, hypernet_dims: []"}};
  const std::map<std::string, std::string> networks = {{"flat", "fc_dims: []"},
                                                       {"one", "fc_dims: [13]"},
                                                       {"two", "fc_dims: [24, 10]"},
                                                       {"gru", "type: gru, width: 9"},
                                                       {"mingru", "type: mingru, width: 9, fc_dims: [7]"},
                                                       {"lstm", "type: lstm, width: 9, activation: relu"}};
  std::string model = networks.at(feature(features, kNetwork));
  const bool recurs = model.starts_with("type");
  if (feature(features, kSequences) == "short") model += ", sequence_length: 5";
  if (feature(features, kNorm) == "norm") model += ", layer_norm: true";
  if (feature(features, kValue) == "separate") model += ", separate_value: true";
  if (feature(features, kActions) == "squashed") model += ", distribution: squashed_gaussian";
  if (feature(features, kActions) == "gsde") model += ", distribution: gsde, noise_every: 3";
  if (feature(features, kInput) != "observation") model += ", input: entities, nearest: 2";
  if (feature(features, kInputUnits) == "scaled") model += ", normalize_input: true";
  if (feature(features, kValues) == "dueling") model += ", dueling: true";
  if (feature(features, kValues) == "quantiles") model += ", quantiles: 3";
  if (feature(features, kAlgorithm).ends_with("qmix")) model += ", critic_reads: [places]";
  if (feature(features, kInput) == "pooled") model += ", pool: mean_max, attention: 1, embedding: 6";
  const std::map<std::string, std::string> units = {
      {"raw", ""}, {"values", "normalize_value: true, "}, {"rewards", "normalize_reward: true, "}};
  std::string algorithm = algorithms.at(feature(features, kAlgorithm));
  if (const auto batch = algorithm.find("140"); batch != std::string::npos && recurs) {
    // Windows of 16 steps, or of 5, with one more before them.
    if (feature(features, kSequences) == "whole") algorithm.replace(batch, 3, "112");
    if (const auto buffer = algorithm.find("300"); buffer != std::string::npos)
      algorithm.replace(buffer, 3, "560");
    algorithm += ", burn_in: 1";
  }
  return concat("algorithm: ", algorithm, ", ", units.at(feature(features, kUnits)),
                feature(features, kActivations) == "kept" ? "reuse_activations: true, " : "", "model: {",
                model, "}");
}

std::string recordings_of(const Combination& features) {
  std::string name;  // shorter than a file's name may be
  for (const int index : features) name += static_cast<char>('a' + index);
  return testing::TempDir() + "matrix_" + name;
}

std::vector<std::string> settings_of(const Combination& features, const std::string& policy) {
  const std::string &actions = feature(features, kActions), &policies = feature(features, kPolicies);
  return {concat("trainer.num_envs=", kReplicas),
          concat("trainer.train_batch_size=", kReplicas * kSteps),
          concat("trainer.precision=", feature(features, kPrecision)),
          concat("trainer.observations=", feature(features, kStorage)),
          concat("env.kind=", actions == "choice" || actions == "heads" ? actions : "box"),
          concat("env.masks=", feature(features, kMasks) == "masked" ? "true" : "false"),
          policies == "shared"
              ? concat("policy={shared: {", policy, "}}")
              : concat("policy={few: {", policies == "two" ? "average: 0.9, " : "", policy, "}, many: {",
                       policies == "frozen" ? "to_train: false, " : "", policy, "}}")};
}

std::vector<std::string> settings_of(const Combination& features) {
  std::vector<std::string> all = settings_of(features, policy_text(features));
  if (feature(features, kSource) == "recorded") all.push_back("trainer.offline=" + recordings_of(features));
  return all;
}

// Plays two rollouts of the same game, and records them.
void record(const Combination& features) {
  const Experiment setup = make_setup("crowd", settings_of(features, "model: {fc_dims: [4]}"));
  Trainer trainer(setup.config, *setup.environment, {});
  std::filesystem::remove_all(recordings_of(features));
  std::vector<RecordingWriter> writers;
  for (const PolicyBuffers& buffers : trainer.trajectory().policies())
    writers.emplace_back(std::filesystem::path(recordings_of(features)) / buffers.name, buffers,
                         recording_metadata(setup.config.name, setup.environment->spec(), buffers),
                         2 * kSteps, std::int64_t{1} << 30);
  for (int k = 0; k < 2; ++k) {
    trainer.rollout();
    for (RecordingWriter& writer : writers) writer.append(kSteps);
  }
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
    const AlgorithmTraits traits = policy.algorithm->traits();
    EXPECT_EQ(metrics.at(policy.name + "/updates"), policy.to_train ? traits.epochs * traits.minibatches : 0)
        << "updates of " << policy.name;
    EXPECT_EQ(metrics.at(policy.name + "/empty_minibatches"), 0) << policy.name;
  }
}

// [bytes] that values of teams add to PQN.
double team_bytes(Trainer& trainer, const CountingMemory& memory, const Config& config, std::size_t p) {
  if (!std::string(config.policies[p].algorithm->name()).starts_with("PQN-")) return 0.0;
  const auto held_by = [&](const AlgorithmChoice& algorithm) {
    PolicySettings settings = config.policies[p];
    settings.algorithm = algorithm;
    const double before = memory.held();
    const Learner learner(trainer.policies(), trainer.trajectory(), static_cast<int>(p), settings, 1);
    return memory.held() - before;
  };
  PqnSettings plain;
  plain.num_minibatches = config.policies[p].algorithm.as<PqnSettings>().num_minibatches;
  return held_by(config.policies[p].algorithm) - held_by(plain);
}

class Matrix : public testing::TestWithParam<Combination> {};

TEST_P(Matrix, MakesTheUpdatesAndTakesTheMemoryThatWereAnnounced) {
  if (feature(GetParam(), kSource) == "recorded") record(GetParam());
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
  if (!trainer.has_memory() && config.trainer.offline.empty()) {
    double unsaved = 0.0;
    for (std::size_t p = 0; p < config.policies.size(); ++p) {
      unsaved += team_bytes(trainer, memory, config, p);
      const PolicyBuffers& buffers = trainer.trajectory().policies()[p];
      const bool on_policy = dynamic_cast<const OnPolicySettings*>(&*config.policies[p].algorithm) != nullptr;
      if (on_policy && buffers.action_mask.defined()) unsaved += held_bytes(buffers.mask);  // with a choice
    }
    EXPECT_EQ(needed.algorithms, algorithm_bytes(trainer) + unsaved);
  }
  double gathered = 0.0;
  for (std::size_t p = 0; p < config.policies.size(); ++p) {
    const Policy& policy = trainer.policies()[p];
    expect_no_waste(policy);
    if (config.policies[p].algorithm->traits().learns_from != LearnsFrom::kPlay) continue;
    const Sequences sequences = policy.sequences(kSteps);
    const int count = config.policies[p].algorithm->traits().minibatches;
    const double others = memory.held();
    const Minibatches minibatches(trainer.trajectory().policies()[p], kSteps, kReplicas, count, 0, sequences);
    if (memory.held() > others)
      gathered +=
          memory.held() - others - order_bytes(count, std::max(sequences.length, 1), sequences.length > 0);
  }
  EXPECT_EQ(needed.minibatches, gathered);
}

INSTANTIATE_TEST_SUITE_P(Cover, Matrix, testing::ValuesIn(cover().chosen),
                         [](const auto& info) { return name_of(info.param); });

struct OpposedTraining {
  const char *env, *policy;
  std::string opponents;
  int replicas = 1024, iterations = 4;

  // [bytes] that it takes, and that were computed for it.
  std::pair<double, double> measured_and_needed(bool with) const {
    CountingMemory memory;
    std::vector<std::string> settings = {concat("trainer.num_envs=", replicas),
                                         concat("trainer.train_batch_size=", 4 * replicas),
                                         concat("policy={", policy, "}")};
    if (with) settings.push_back(concat("opponents={", opponents, "}"));
    const Experiment setup = make_setup(env, settings);
    const double before = memory.held();
    Trainer trainer(setup.config, *setup.environment, {});
    for (int k = 0; k < iterations; ++k) trainer.iterate();
    return {memory.held() - before, scaling::memory_needed(setup.config, *setup.environment, 1).total()};
  }

  // Of the opponents alone: memory_needed() leaves out the working memory of policies that learn.
  void expect_memory() const {
    const auto [alone, needed_alone] = measured_and_needed(false);
    const auto [with, needed] = measured_and_needed(true);
    EXPECT_NEAR((needed - needed_alone) / (with - alone), 1.0, 0.1)
        << opponents << ": computed " << needed - needed_alone << ", took " << with - alone;
  }
};

// On a CPU, even where they are asked for.
TEST(MatrixTest, PoliciesWithOpponentsKeepNoActivations) {
  const Experiment setup = make_setup(
      "tag_gridworld",
      {"trainer.num_envs=8", "trainer.train_batch_size=64", "opponents.runner=[self, random]",
       "policy={tagger: {}, runner: {algorithm: A2C, reuse_activations: true, model: {fc_dims: [8]}}}"});
  Trainer trainer(setup.config, *setup.environment, {});
  EXPECT_EQ(trainer.trajectory().policies()[1].activations, nullptr);
  EXPECT_EQ(scaling::memory_needed(setup.config, *setup.environment, 1).activations, 0.0);
  EXPECT_GT(scaling::memory_needed(setup.config, *setup.environment, 1, {DeviceKind::kCuda}).activations,
            0.0);
}

// Of many replicas, most is for rows; of few, for weights, of which a pool has some that wait on the host.
TEST(MatrixTest, OpponentsTakeTheMemoryThatWasAnnounced) {
  const char* const game = "tag_gridworld";
  const char* const taggers = "tagger: {model: {fc_dims: [8]}}, runner: {model: {fc_dims: [8]}}";
  const char* const wide = "tagger: {model: {fc_dims: [8]}}, runner: {model: {fc_dims: [96, 96]}}";
  std::vector<std::string> runs;
  for (const char* const model : {"{fc_dims: [8]}", "{fc_dims: [48, 32], separate_value: true}"})
    runs.push_back(save_run(
        concat("memory_of_opponents_", runs.size()), game,
        {concat("policy={tagger: {}, runner: {algorithm: PPO, num_minibatches: 1, model: ", model, "}}")}));
  const std::vector<OpposedTraining> trainings = {
      {game, taggers, "runner: [{pool: {size: 6, every: 4096, draw: latest}, share: 0.5}, self, random]"},
      {"simple_tag", "adversary: {model: {fc_dims: [24]}}, good_agent: {model: {fc_dims: [8]}}",
       "adversary: [{pool: {size: 24, every: 4096, draw: latest}}]"},
      {game, taggers, concat("runner: [", runs[0], ", ", runs[1], "]")},
      {game, wide, "runner: [{pool: {size: 30, every: 16, draw: latest}, share: 0.2}]", 4, 150}};
  for (const OpposedTraining& training : trainings) training.expect_memory();
}

// What the matrix leaves out, no configuration can have.
TEST(MatrixTest, TheProgramRefusesWhatNoTrainingCovers) {
  EXPECT_LE(cover().chosen.size(), 75U);
  std::set<std::string> refused;
  for (const FeaturePair& pair : cover().impossible) {
    refused.insert(name_of(pair));
    for (std::size_t network = 0; network < kFeatures[kNetwork].size(); ++network) {
      Combination features = {static_cast<int>(network)};
      features[static_cast<std::size_t>(pair[0])] = pair[1];
      features[static_cast<std::size_t>(pair[2])] = pair[3];
      EXPECT_THROW(
          {
            const Experiment setup = make_setup("crowd", settings_of(features));
            Trainer(setup.config, *setup.environment, {});
          },
          UsageError)
          << name_of(features);
    }
  }
  EXPECT_EQ(refused, (std::set<std::string>{"a2c with dueling",
                                            "a2c with quantiles",
                                            "a2c with recorded",
                                            "bc with dueling",
                                            "bc with kept",
                                            "bc with played",
                                            "bc with quantiles",
                                            "bc with rewards",
                                            "bc with scaled",
                                            "bc with values",
                                            "ddpg with choice",
                                            "ddpg with dueling",
                                            "ddpg with gsde",
                                            "ddpg with heads",
                                            "ddpg with kept",
                                            "ddpg with masked",
                                            "ddpg with rewards",
                                            "ddpg with squashed",
                                            "ddpg with values",
                                            "dqn with gaussian",
                                            "dqn with gsde",
                                            "dqn with kept",
                                            "dqn with rewards",
                                            "dqn with squashed",
                                            "dqn with values",
                                            "dueling with kept",
                                            "flat with gsde",
                                            "flat with short",
                                            "gaussian with dueling",
                                            "gaussian with masked",
                                            "gru with kept",
                                            "mingru with kept",
                                            "lstm with kept",
                                            "gru with gsde",
                                            "mingru with gsde",
                                            "lstm with gsde",
                                            "gsde with dueling",
                                            "gsde with masked",
                                            "kept with recorded",
                                            "one with short",
                                            "ppo with dueling",
                                            "ppo with kept",
                                            "ppo with quantiles",
                                            "ppo with recorded",
                                            "pqn with gaussian",
                                            "pqn with gsde",
                                            "pqn with kept",
                                            "pqn with quantiles",
                                            "pqn with recorded",
                                            "pqn with rewards",
                                            "pqn with squashed",
                                            "pqn with values",
                                            "pqn-qmix with gaussian",
                                            "pqn-qmix with gsde",
                                            "pqn-qmix with kept",
                                            "pqn-qmix with quantiles",
                                            "pqn-qmix with recorded",
                                            "pqn-qmix with rewards",
                                            "pqn-qmix with squashed",
                                            "pqn-qmix with values",
                                            "qmix with gaussian",
                                            "qmix with gsde",
                                            "qmix with kept",
                                            "qmix with quantiles",
                                            "qmix with rewards",
                                            "qmix with squashed",
                                            "qmix with values",
                                            "quantiles with kept",
                                            "reinforce with dueling",
                                            "reinforce with quantiles",
                                            "reinforce with recorded",
                                            "reinforce with values",
                                            "rewards with dueling",
                                            "rewards with quantiles",
                                            "rewards with recorded",
                                            "sac with dueling",
                                            "sac with kept",
                                            "sac with rewards",
                                            "sac with squashed",
                                            "sac with values",
                                            "scaled with recorded",
                                            "separate with ddpg",
                                            "separate with dqn",
                                            "separate with dueling",
                                            "separate with pqn",
                                            "separate with pqn-qmix",
                                            "separate with qmix",
                                            "separate with quantiles",
                                            "separate with sac",
                                            "separate with td3",
                                            "short with gsde",
                                            "short with kept",
                                            "squashed with dueling",
                                            "squashed with masked",
                                            "squashed with quantiles",
                                            "td3 with choice",
                                            "td3 with dueling",
                                            "td3 with gsde",
                                            "td3 with heads",
                                            "td3 with kept",
                                            "td3 with masked",
                                            "td3 with rewards",
                                            "td3 with squashed",
                                            "td3 with values",
                                            "two with short",
                                            "values with dueling",
                                            "values with quantiles",
                                            "values with recorded"}));
}

// Modules read a table only as lists of things.
TEST(MatrixTest, TheProgramRefusesModulesThatReadATable) {
  Combination features = {};
  features[kNetwork] = 3;
  features[kStorage] = 1;
  EXPECT_EQ(name_of(features),
            "gru_whole_plain_joint_a2c_fp32_table_choice_free_shared_raw_observation_unscaled_means_computed_"
            "played");
  std::vector<std::string> settings = settings_of(features);
  EXPECT_NO_THROW(make_setup("crowd", settings));
  for (std::string& word : settings)
    if (const auto found = word.find("type: gru"); found != std::string::npos)
      word.replace(found, 9, "type: stepped_gru");
  EXPECT_THROW(make_setup("crowd", settings), UsageError);
}

}  // namespace
}  // namespace wd
