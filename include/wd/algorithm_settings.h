// algorithm_settings.h: the settings of an algorithm, and the algorithms by name.
//
//   struct MineSettings final : wd::AlgorithmSettings {
//     wd::Schedule lr = 1e-3;
//     const char* name() const override { return "MINE"; }
//     void describe(wd::Fields& field) override { field("lr", lr, {0, 10}, "learning rate of Adam"); }
//     ...
//   };
//   WD_REGISTER_ALGORITHM(MineSettings);
//
// and in YAML:  policy: {tagger: {algorithm: MINE, lr: 3e-4}}
//
// wd/algorithm.h has the algorithm itself; examples/custom_algorithm is a whole one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "wd/metrics.h"
#include "wd/params.h"

namespace wd {

class Algorithm;
struct AlgorithmContext;
struct ModelSettings;
struct PolicyLayout;
enum Precision : int;

// Of Adam's epsilon: smaller numbers have no normal float32, and 0 divides by 0 where there is no gradient.
inline constexpr double kLeastAdamEpsilon = 1e-37;

// The shape of a training run, which the settings of an algorithm must fit.
struct TrainingShape {
  std::int64_t num_envs = 0;
  std::int64_t rollout_steps = 0;  // T
  std::int64_t time_limit = 0;     // max steps per episode
  bool cuts_rollouts = false;      // trainer.straggler_preempt may end a rollout early
  // Steps that always stay together in a minibatch: 1, or those of a sequence for a network with a state.
  std::int64_t steps_together = 1;
  std::int64_t num_agents = 1;  // A: that the policy acts for, rows of a step of a replica
  bool offline = false;         // learns from recorded transitions, and nothing is played
  double highest_entropy = std::numeric_limits<double>::infinity();  // of an action, see wd/config.h

  std::int64_t batch() const { return num_envs * rollout_steps; }
  // Minibatches consist of units: steps of one replica each, or sequences.
  // Rows of one unit of each replica.
  std::int64_t least_rows() const { return num_envs * num_agents * steps_together; }
  // Units of each replica that an epoch learns from: all, or, unless max_rows is 0, as many as keep the rows
  // of all replicas at max_rows or below, but one at least.
  std::int64_t share(std::int64_t max_rows) const {
    const std::int64_t all = rollout_steps / steps_together;
    return max_rows == 0
               ? all
               : std::clamp<std::int64_t>(max_rows / least_rows(), 1, std::max<std::int64_t>(all, 1));
  }
  // Units of an epoch, of all replicas.
  std::int64_t units(std::int64_t max_rows = 0) const { return num_envs * share(max_rows); }
};

// What the memory of one worker's algorithm depends on.
struct WorkerShape {
  const PolicyLayout& layout;
  const ModelSettings& model;
  Precision precision;
  double replicas;  // of this worker: the mean over workers
  std::int64_t rollout_steps;
  std::int64_t num_envs = 0;  // replicas of all workers
  std::int64_t recorded = 0;  // entries of each replica that trainer.offline gives; 0: none, they are played
};

// Replicas, and the steps of their rollouts, where they are not given.
struct UsualShape {
  std::int64_t num_envs = 64, rollout_steps = 128;
  bool operator==(const UsualShape&) const = default;
};

// What an algorithm learns from.
enum class LearnsFrom {
  kPlay,        // rollouts of the policy
  kEither,      // these, or recorded transitions (trainer.offline)
  kRecordings,  // recorded transitions only
};

// What the network of a policy computes for the choices of an action.
enum class PolicyOutput {
  kDistribution,  // the parameters of a distribution, and the value of the state
  kValues,        // the value of every choice; the value of an action is the sum over its heads
  // For off-policy actors, which learn from critics and compute no value of the state:
  kPoint,  // a bounded continuous action
  kActor,  // the parameters of a distribution, all of which depend on the state: of bounded continuous
           // actions, mean and deviation; of choices, their logits
};

// The critics of a policy: networks that compute the value of an action in a state; of choices, the values of
// all of them.
struct CriticShape {
  int count = 0;
  int quantiles = 1;  // numbers that a critic gives for a value: its quantiles, whose mean it is
};

// Whether the activations of a rollout are kept for the update.
enum Reuse : int { kReuseNo, kReuseYes, kReuseAuto };

// How the value of what a team does, all agents of a policy in one replica, follows from the values of what
// its agents do (wd/kernels/team.h): not at all, as their sum, or by a network that reads the state of the
// game and whose output rises with each of them.
struct Mixer {
  enum Kind { kNone, kSum, kMonotone };

  Kind kind = kNone;
  int units = 32;                  // of the mixing layer
  std::vector<int> hidden = {64};  // hidden layers of the network that computes its weights from the state

  bool reads_state() const { return kind == kMonotone; }
  bool operator==(const Mixer&) const = default;
};

// What the rest of the program needs to know about an algorithm with these settings.
struct AlgorithmTraits {
  // kEither: what it learns from is in a replay memory (wd/replay.h).
  LearnsFrom learns_from = LearnsFrom::kPlay;
  PolicyOutput output = PolicyOutput::kDistribution;
  int critics = 0;                // how many the policy has beside its actor
  bool learns_quantiles = false;  // the loss is one of quantiles of values; false: model.quantiles must be 1
  // Actions are explored with noise that depends on that of the step before, which the trajectory carries.
  bool carries_noise = false;
  // The network computes values in units of their own (Policy::normalize_values).
  bool normalizes_value = false;
  // Of those with a replay memory: can learn from windows of networks with a state (ReplayBatch), and how
  // many steps of them only lead to the state.
  bool windows = false;
  int burn_in = 0;
  // The critic must read a stream of replicas (model.critic_reads).
  bool values_state = false;
  // Learns one value of all agents of a replica; its network is the policy's (Policy::mixer).
  Mixer mixer = {};
  // Whether the update uses activations kept from the rollout. kReuseAuto: it can, and does on a GPU whose
  // memory has room for them.
  Reuse keeps_activations = kReuseNo;
  // Iterations are short, since the algorithm remembers more than a rollout: intervals of training then count
  // environment steps (trainer.intervals).
  bool short_iterations = false;
  // False: a rollout must not begin in the middle of an episode whose beginning was cut off.
  bool staggered_resets = true;

  // How many times each row of a rollout is learned from, and into how many minibatches it is divided for
  // that: optimizer steps per rollout are their product, unless something ends them early. A minibatch has at
  // least one step of a replica, or one sequence of a network with a state.
  int epochs = 1, minibatches = 1;
  // Agents' rows of a rollout, of all replicas, that an epoch learns from at most; 0: all.
  std::int64_t row_limit = 0;
  // For the autoscaler: numbers of replicas that the algorithm can learn from are multiples of this
  // (PolicySettings::replicas_unit() if the network has a state), and it can learn from so many environment
  // steps per iteration at most; 0: any number.
  std::int64_t replicas_unit = 1, max_batch = 0;
};

// A metric of policies that an algorithm declares.
struct OwnMetric {
  const char* name;  // a-z, 0-9, _
  const char* help;
  Reduce reduce = Reduce::kMean;
};

// The settings of one algorithm, and its properties that the rest of the program needs.
class AlgorithmSettings {
 public:
  virtual ~AlgorithmSettings() = default;
  bool operator==(const AlgorithmSettings&) const = default;  // has no fields of its own

  virtual const char* name() const = 0;
  virtual std::unique_ptr<AlgorithmSettings> copy() const = 0;
  virtual void describe(Fields& field) = 0;

  // Calls problem(key, value, reason) for every setting that contradicts another one or the shape of
  // training.
  using Problem =
      std::function<void(const std::string& key, const std::string& value, const std::string& reason)>;
  virtual void check(const TrainingShape&, const Problem&) const {}

  // The learning rate, which the autoscaler may scale with the batch.
  virtual Schedule& learning_rate() = 0;
  virtual AlgorithmTraits traits() const { return {}; }
  // The shape of training that it learns well from, for episodes of this length.
  virtual UsualShape usual_shape(std::int64_t /*time_limit*/) const { return {}; }
  // Changes those defaults of a policy's network that are others for this algorithm.
  virtual void suit(ModelSettings&) const {}
  // What Algorithm::metrics() measures besides the metrics of docs/metrics.md: their names, how values of
  // several workers are reduced, and their meanings. The texts are literals.
  virtual std::vector<OwnMetric> metrics() const { return {}; }
  // For measurements: learning begins with the first iteration, as far as that is possible.
  virtual void learn_at_once() {}
  // Bytes of device memory that one worker's algorithm allocates beyond the policy's parameters, their
  // gradients and moments, and minibatches of the rollout: other networks (model_bytes() in wd/model.h), a
  // replay memory.
  virtual double bytes(const WorkerShape&) const { return 0.0; }
  // Steps per rollout from which the algorithm learns well, for episodes of this length.
  virtual std::int64_t wanted_rollout(std::int64_t time_limit) const = 0;
  virtual std::unique_ptr<Algorithm> make(const AlgorithmContext& context) const = 0;
};

// Throws UsageError if the name is taken, or declare_metric() does for a metric of its own. Not thread-safe:
// call it before main() or at its start.
void register_algorithm(std::unique_ptr<AlgorithmSettings> defaults);
// In alphabetical order.
std::vector<std::string> algorithm_names();

// The settings of one algorithm, as a copyable value.
class AlgorithmChoice {
 public:
  AlgorithmChoice() : AlgorithmChoice(named("PPO")) {}
  // Implicit: settings select their algorithm.
  AlgorithmChoice(const AlgorithmSettings& settings) : settings_(settings.copy()) {}
  AlgorithmChoice(const AlgorithmChoice& other) : settings_(other.settings_->copy()) {}
  AlgorithmChoice(AlgorithmChoice&&) noexcept = default;
  AlgorithmChoice& operator=(const AlgorithmChoice& other) {
    settings_ = other.settings_->copy();
    return *this;
  }
  AlgorithmChoice& operator=(AlgorithmChoice&&) noexcept = default;
  ~AlgorithmChoice() = default;

  // The defaults of the algorithm with this name. Throws UsageError if there is none.
  static AlgorithmChoice named(const std::string& name);

  AlgorithmSettings& operator*() const { return *settings_; }
  AlgorithmSettings* operator->() const { return settings_.get(); }
  // The settings as this type. Throws std::bad_cast if the policy has another algorithm.
  template <typename Settings>
  Settings& as() const {
    return dynamic_cast<Settings&>(*settings_);
  }
  template <typename Settings>
  bool is() const {
    return dynamic_cast<const Settings*>(settings_.get()) != nullptr;
  }

 private:
  std::unique_ptr<AlgorithmSettings> settings_;
};

}  // namespace wd

// At namespace scope of one source file.
#define WD_REGISTER_ALGORITHM(type) \
  static const bool wd_registered_##type = (::wd::register_algorithm(std::make_unique<type>()), true)
