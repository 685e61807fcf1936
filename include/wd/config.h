// config.h: every setting of a training run, the origin of each value, and how files and the command line are
// merged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wd/algorithm_settings.h"
#include "wd/cast.h"
#include "wd/detail/networks.h"
#include "wd/error.h"
#include "wd/params.h"
#include "wd/spec.h"

namespace wd {

enum Activation : int { kRelu, kTanh };
inline constexpr const char* kActivationNames[] = {"relu", "tanh"};
enum ModelInput : int { kObservationInput, kEntityInput, kChoiceInput };
enum EntityPool : int { kNoPool, kMeanPool, kMaxPool, kMeanAndMaxPool };
enum ContinuousDistribution : int { kGaussianActions, kSquashedGaussianActions, kGsdeActions };
inline constexpr const char* kContinuousDistributionNames[] = {"gaussian", "squashed_gaussian", "gsde"};
enum InitMethod : int { kOrthogonal, kXavier, kTorchDefault };
enum Precision : int { kFp32, kTf32, kBf16 };
enum ObservationForm : int { kRows, kTable, kAutoForm };
enum DeviceChoice : int { kDeviceAuto, kDeviceCpu, kDeviceCuda };
enum ScalingObjective : int { kObjectiveSpeed, kObjectiveMemory };
enum ScaleLr : int { kScaleLrNone, kScaleLrSqrt, kScaleLrLinear };
enum StopOn : int { kStopOnTraining, kStopOnEval };
enum IntervalUnit : int { kIntervalsAuto, kIntervalsIterations, kIntervalsEnvSteps };
enum ReplaySaving : int { kReplayAlways, kReplayLast, kReplayNever };
enum EvalDevice : int { kEvalDeviceSame, kEvalDeviceCpu, kEvalDeviceCuda };

// policy.NAME.model: the network.
struct ModelSettings {
  // Settings of a registered network; empty for fully_connected, whose settings follow. Of those, networks
  // with memory of the library's own have fc_dims, before the memory, critic_dims, behind it, and activation
  // and layer_norm.
  NetworkChoice network;
  std::vector<int> fc_dims = {256, 256};
  std::vector<int> critic_dims = {};  // of the critics of actions; empty: fc_dims
  Activation activation = kRelu;
  bool layer_norm = false;
  bool separate_value = false;
  // What the network reads: the observation, or features of the things that it describes, with these
  // settings.
  ModelInput input = kObservationInput;
  // What the networks read: the observation, streams of the environment by name, and "agent_id". And what
  // those read that compute a value apart from the actor, or the values of actions; empty: the same.
  std::vector<std::string> reads = {"observation"}, critic_reads = {};
  int nearest = 3;
  double half_distance = 0.05;
  EntityPool pool = kNoPool;
  int attention = 0, embedding = 32;
  // For values of choices (PolicyOutput::kValues): the network computes the value of the state apart from the
  // advantages of choices; and this many quantiles of every value, as critics of continuous actions do too.
  // See src/nets/values.h.
  bool dueling = false;
  int quantiles = 1;
  bool normalize_input = false;
  InitMethod init_method = kOrthogonal;
  ContinuousDistribution distribution = kGaussianActions;  // for continuous actions
  int noise_every = 4;                                     // kGsdeActions: steps that share a noise matrix
  double initial_log_std = 0.0;
  std::string model_ckpt_filepath;
  // For networks with a state: steps per gradient; 0: the whole rollout, or kReplayed with a replay memory.
  int sequence_length = 0;
  static constexpr int kReplayed = 16;

  // What the actor and the critic read, some of it perhaps twice.
  std::vector<std::string> all_reads() const {
    std::vector<std::string> all = reads;
    all.insert(all.end(), critic_reads.begin(), critic_reads.end());
    return all;
  }
  const std::vector<std::string>& read_by(bool critic) const {
    return critic && !critic_reads.empty() ? critic_reads : reads;
  }
  // Whether embeddings of all things are read.
  bool pools() const { return input == kEntityInput && (pool != kNoPool || attention > 0); }
  // Whether a part of the network is made of fully connected layers: all of it, or what embeds things.
  bool has_layers() const { return !is_module() || pools(); }
  bool is_module() const { return network && network->is_module(); }
  // Size of the state that an agent carries from one step to the next.
  int state_size() const { return network ? network->state_size() * (separate_value ? 2 : 1) : 0; }
  // Steps that always stay together in a minibatch: 1, or those of a sequence for a network with a state.
  std::int64_t steps_together(std::int64_t rollout_steps) const {
    if (state_size() == 0) return 1;
    return sequence_length > 0 ? sequence_length : rollout_steps;
  }
  // The same of windows of a replay memory: the steps of one that are learned from.
  std::int64_t replayed_together() const { return steps_together(kReplayed); }

  // Makes this the kind of network (network_names()), with its own settings and layers; from one memory of
  // the library's own to another, all are kept. Throws UsageError for an unknown name.
  void set_type(const std::string& type);
  // Describes the type first; selecting another type resets its settings to their defaults. What has no
  // effect is not described, and reset too: a configuration is what is printed of it.
  void describe(Fields& field);
  bool operator==(const ModelSettings&) const = default;

 private:
  void describe_input(Fields& field);
  void describe_layers(Fields& field);
  void forget_unused();
};

// policy.NAME: one network, the agents it acts for, and how it learns. Schedules run over environment steps.
struct PolicySettings {
  std::string name;                // the key of its section
  std::vector<std::string> roles;  // of its agents; never empty after load_config
  // Runs of agents for which it acts: "tagger", "runner 0-49" by numbers within the role, or "0-49" by ids;
  // empty: all agents of the roles.
  std::vector<std::string> agents;
  bool to_train = true;
  double average = 0.0;                 // of its weights: the share of it that an iteration keeps; 0: none
  std::vector<ListedPlayer> opponents;  // opponents.NAME: who acts in its place in some episodes
  AlgorithmChoice algorithm;            // including its settings
  ModelSettings model;

  PolicySettings() { algorithm->suit(model); }
  // Learns by this algorithm, with its defaults, also for the network. Throws UsageError if there is none.
  void learn_by(const std::string& algorithm);

  // ModelSettings::steps_together() of rollouts, or of windows of a replay memory.
  std::int64_t steps_together(std::int64_t rollout_steps) const;
  // AlgorithmTraits::replicas_unit: of as many windows as a batch has.
  std::int64_t replicas_unit() const;
  // How many different players beside itself `opponents` names.
  int num_opponents() const;
  // All fields but name, opponents and model; selecting another algorithm resets the settings to its
  // defaults.
  void describe(Fields& field);
};

// The shape of training of a policy with num_envs replicas and rollouts of rollout_steps steps.
TrainingShape training_shape(const PolicySettings& policy, const Spec& spec, std::int64_t num_envs,
                             std::int64_t rollout_steps);
// The entropy of uniform draws of an action [nat]: of all choices, or of components in half-widths.
double highest_entropy(const ActionSpace& actions);

// env: settings of every environment; an environment's own parameters are in the same section.
struct EnvSettings {
  ResetMode reset = ResetMode::kRandom;
  int reset_pool_size = 0;
  std::string starts;
  // kPlayed: episodes begin at random, but nothing counts before so many moves, least and most, were made.
  std::vector<int> played_moves = {0, 8};
  bool played_by_policy = false;

  void describe(Fields& field);
  bool operator==(const EnvSettings&) const = default;
};

struct TrainerSettings {
  static constexpr Range kSeeds = {0, 9'007'199'254'740'992};  // 2^53: exact in a double and in JSON
  static constexpr Range kSteps = {0, 1e15};

  std::int64_t num_envs = 64;
  std::int64_t train_batch_size = 8192;
  std::int64_t num_episodes = 10'000;
  std::int64_t total_steps = 0;  // after load_config: never 0, and a multiple of an iteration
  std::int64_t seed = 1;
  int population = 0;
  DeviceChoice device = kDeviceAuto;
  int threads = 0;
  int chunk_rows = 131'072;
  bool cuda_graphs = true;
  bool time_algorithms = true;
  bool staggered_resets = true;
  Precision precision = kFp32;
  ObservationForm observations = kRows;  // after load_config: never kAutoForm
  double max_seconds = 0.0;
  std::optional<double> stop_return;
  StopOn stop_on = kStopOnTraining;
  double straggler_preempt = 0.0;
  std::int64_t canary_freq = 100;
  IntervalUnit intervals = kIntervalsAuto;  // after load_config: never kIntervalsAuto
  std::string offline;                      // folder of `wdtrain record`; empty: learns from what is played

  // Steps per rollout: T.
  std::int64_t rollout_steps() const { return train_batch_size / num_envs; }
  ObservationStorage storage() const {
    const bool table = observations == kTable;  // always float32
    return {precision == kBf16 && !table ? ObservationType::kBfloat16 : ObservationType::kFloat32, table};
  }

  void describe(Fields& field);
  bool operator==(const TrainerSettings&) const = default;
};

struct SavingSettings {
  std::int64_t metrics_log_freq = 10;
  std::int64_t model_params_save_freq = 1000;
  std::int64_t checkpoint_freq = 100;
  double checkpoint_seconds = 120.0;
  int keep_last = 3;
  ReplaySaving replay = kReplayLast;
  std::string basedir = "runs";
  std::string name;
  std::string tag;
  std::string run_dir;

  // The folder that contains runs: basedir, then name and tag if they are given.
  std::filesystem::path base() const;

  void describe(Fields& field);
  bool operator==(const SavingSettings&) const = default;
};

// autoscale: how --auto_scale chooses num_envs and train_batch_size.
struct AutoscaleSettings {
  // The part of a GPU's budget that may be in use once the activations of rollouts are kept by default; the
  // rest is for the working memory of updates.
  static constexpr double kShareWithKept = 0.85;

  ScalingObjective objective = kObjectiveSpeed;
  std::int64_t min_iterations = 200;
  std::int64_t min_rollout = 0;
  double memory_fraction = 0.95;
  double memory_gb = 0.0;
  std::int64_t max_envs = 10'000'000;
  std::int64_t max_batch = 10'000'000'000;
  double max_seconds = 600.0;
  double probe_seconds = 1.0;
  double max_iteration_seconds = 10.0;
  ScaleLr scale_lr = kScaleLrNone;

  // [bytes] of a GPU with `total` bytes that one of `workers` may use.
  double gpu_budget(double total, int workers) const;
  void describe(Fields& field);
  bool operator==(const AutoscaleSettings&) const = default;
};

// eval: evaluations during training, by the first worker.
struct EvalSettings {
  std::int64_t every = 0;
  int episodes = 100;
  std::int64_t seed = 1;
  bool greedy = false;
  std::string opponent = "none";  // a PlayerSpec, or one of these words
  EvalDevice device = kEvalDeviceSame;

  // Who plays against each role in turn; empty: the policies play with each other.
  std::vector<PlayerSpec> opponents() const;
  void describe(Fields& field);
  bool operator==(const EvalSettings&) const = default;
};

// play: episodes that a run records during training.
struct PlaySettings {
  std::int64_t every = 0;
  int max_steps = 10'000;

  void describe(Fields& field);
  bool operator==(const PlaySettings&) const = default;
};

// A setting that differs between the members of a population: members: {policy.shared.lr: [1e-3, 3e-4]}.
struct MemberSetting {
  std::string path;
  std::vector<std::string> values;  // YAML, by member
};

struct Config {
  std::string name;    // of the environment; the absolute path of a source file
  std::string source;  // hash of that file and what it includes; of all others empty
  EnvSettings env;     // the environment object holds its own parameters
  TrainerSettings trainer;
  std::vector<PolicySettings> policies;  // in the order of the file
  std::vector<Seat> seats;               // which of the policies acts for which agents
  SavingSettings saving;
  EvalSettings eval;
  PlaySettings play;
  AutoscaleSettings autoscale;
  std::vector<MemberSetting> members;  // of trainer.population

  // Whether first episodes of an environment with this time limit are cut short, each at a different step.
  bool staggers(int time_limit) const;

  // "trainer.num_envs" to "FILE:LINE" or "--set"; absent: default.
  std::map<std::string, std::string> origins;
  std::vector<std::string> notes;    // messages for the user: rounding, keys without effect
  std::filesystem::path checkpoint;  // that training goes on from, with the opponents that it holds; or empty
  std::string inherited;  // message about the keys that the environment's own file adds to the user's; or ""
};

// All problems of a configuration, one per line: `FILE:LINE:COL: section.key = value: reason`.
class ConfigError : public UsageError {
 public:
  explicit ConfigError(std::vector<std::string> problems);
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  std::vector<std::string> problems_;
};

// One value from the command line; `text` is read as YAML.
struct Override {
  std::string path;  // "trainer.num_envs", "policy.tagger.lr", "policy.tagger.model.fc_dims"
  std::string text;
  std::string option = "--set";  // for messages and --print_config
};

// Parses "section.key=value", the argument of --set. Throws ConfigError if it has another form.
Override parse_override(std::string_view argument);

// Layers, each overriding the one before: struct defaults, SEARCH/NAME.yaml (the first found), file,
// overrides in order. If the file is one of WarpDrive's, WarpDrive's defaults replace SEARCH/NAME.yaml.
struct ConfigSources {
  std::string env = {};   // --env; empty: the file's `name`
  std::string file = {};  // --config; empty: none
  std::vector<Override> overrides = {};
  std::vector<std::filesystem::path> search = {};  // folders that may hold NAME.yaml
  bool shipped = true;                             // false: the environment's own defaults replace NAME.yaml
  // --algorithm: of all policies that learn, over that of files; empty: as they say.
  std::string algorithm = {};
  // `file` is config.yaml of a run or a checkpoint, perhaps somebody else's: it must be a regular file, and
  // an environment in Python is started only if this user began such a run, or `env` names it, or `trusted`.
  bool of_run = false;
  bool trusted = false;  // --trust
  bool drifts = false;   // --allow_drift
  // Of an environment in Python, which is then not started. Config::source is what the file says.
  const Spec* spec = nullptr;
  std::optional<std::string> text = {};   // of `file`, which then is a name for messages
  std::filesystem::path checkpoint = {};  // Config::checkpoint
};

using Describe = std::function<void(Fields&)>;

// What the loader needs of an environment: its parameters, which the loader writes, and its roles, which
// depend on them.
struct EnvironmentAccess {
  Describe describe;
  std::function<Spec()> spec;
  std::string config = {};     // the environment's own YAML file, read if the search finds no NAME.yaml
  std::string algorithm = {};  // of policies that no file names; empty: that of all environments
  std::string source = {};     // Config::source
};

// Finds an environment by its own name (not an alias). Throws UsageError if there is none.
using EnvironmentLookup = std::function<EnvironmentAccess(const std::string& name)>;

// Reads and checks all layers. Throws ConfigError with all problems found.
Config load_config(const ConfigSources& sources, const EnvironmentLookup& lookup);

// Converts WarpDrive's name of an environment to ours ("single_cartpole" to "cartpole"), and the path of a
// source file to an absolute one; leaves other names unchanged.
std::string canonical_environment(std::string_view name);

// The environment, by its own name, that config.yaml of a run names. Nothing else of the file is used. Throws
// ConfigError.
std::string environment_of_run(const std::string& file);

// Returns the effective values as YAML, which loads back to the same values. With origins, a comment at each
// value gives its origin.
std::string print_config(Config config, const Describe& environment, bool with_origins = true);

// Every value by its path, in the order and format of print_config().
std::vector<std::pair<std::string, std::string>> config_values(Config config, const Describe& environment);

// A 64-bit hash of all effective values: FNV-1a of what print_config() returns without origins.
std::uint64_t config_hash(std::string_view printed_without_origins);

// One field of a section, for help and documentation.
struct FieldInfo {
  std::string name;
  std::string type;   // "int", "number", "bool", "text", "list of int", "schedule", "a | b | c"
  std::string value;  // as YAML
  std::string range;  // "[1, 1024]", "> 0"; empty if any value is allowed
  std::string help;
};

// The fields that a describe function names, in order.
std::vector<FieldInfo> list_fields(const Describe& describe);
// Every setting in the order of print_config(), with its path as the name: "trainer.num_envs".
std::vector<FieldInfo> list_settings(Config config, const Describe& environment);

}  // namespace wd
