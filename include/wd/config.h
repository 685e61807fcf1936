// config.h: every setting of a training run, where each value came from, and how files and command line
// become it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wd/algorithms.h"
#include "wd/error.h"
#include "wd/networks.h"
#include "wd/params.h"
#include "wd/spec.h"

namespace wd {

enum Activation : int { kRelu, kTanh };
inline constexpr const char* kActivationNames[] = {"relu", "tanh"};
enum ContinuousDistribution : int { kGaussianActions, kSquashedGaussianActions };
enum InitMethod : int { kOrthogonal, kXavier, kTorchDefault };
enum Precision : int { kFp32, kTf32, kBf16 };
enum ObservationForm : int { kRows, kTable };
enum DeviceChoice : int { kDeviceAuto, kDeviceCpu, kDeviceCuda };
enum ScalingObjective : int { kObjectiveSpeed, kObjectiveMemory };
enum ScaleLr : int { kScaleLrNone, kScaleLrSqrt, kScaleLrLinear };

// policy.NAME.model: the network.
struct ModelSettings {
  NetworkChoice network;  // settings of a registered network; none for fully_connected, whose settings follow
  std::vector<int> fc_dims = {256, 256};
  Activation activation = kRelu;
  bool separate_value = false;
  InitMethod init_method = kOrthogonal;
  ContinuousDistribution distribution = kGaussianActions;  // of continuous actions
  double initial_log_std = 0.0;
  std::string model_ckpt_filepath;
  int sequence_length = 0;  // of networks with a state: steps of one gradient; 0: the whole rollout

  // Numbers that an agent carries from one step to the next.
  int state_size() const { return network ? network->state_size() * (separate_value ? 2 : 1) : 0; }

  // The type first; naming another one replaces its settings by their defaults.
  void describe(Fields& field);
};

// policy.NAME: one network, the roles it acts for, and how it learns. Schedules run over environment steps.
struct PolicySettings {
  std::string name;                // the key of its section
  std::vector<std::string> roles;  // never empty after load_config
  bool to_train = true;
  AlgorithmChoice algorithm;  // with its settings
  ModelSettings model;

  // All but name and model; naming another algorithm replaces the settings by its defaults.
  void describe(Fields& field);
};

// env: what every environment understands; its own parameters live in the same section.
struct EnvSettings {
  ResetMode reset = ResetMode::kRandom;
  int reset_pool_size = 0;
  std::string starts;

  void describe(Fields& field);
};

struct TrainerSettings {
  static constexpr Range kSeeds = {0, 9'007'199'254'740'992};  // 2^53: whole in a double and in JSON
  static constexpr Range kSteps = {0, 1e15};

  std::int64_t num_envs = 64;
  std::int64_t train_batch_size = 8192;
  std::int64_t num_episodes = 10'000;
  std::int64_t total_steps = 0;  // after load_config: never 0, whole iterations
  std::int64_t seed = 1;
  DeviceChoice device = kDeviceAuto;
  int threads = 0;
  int chunk_rows = 16'384;
  bool cuda_graphs = true;
  bool staggered_resets = true;
  Precision precision = kFp32;
  ObservationForm observations = kRows;
  double max_seconds = 0.0;
  std::optional<double> stop_return;
  double straggler_preempt = 0.0;
  std::int64_t canary_freq = 100;

  // Steps of one rollout: T.
  std::int64_t rollout_steps() const { return train_batch_size / num_envs; }
  ObservationStorage storage() const {
    const bool table = observations == kTable;  // which is float32 in any precision
    return {precision == kBf16 && !table ? ObservationType::kBfloat16 : ObservationType::kFloat32, table};
  }

  void describe(Fields& field);
};

struct SavingSettings {
  std::int64_t metrics_log_freq = 10;
  std::int64_t model_params_save_freq = 1000;
  std::int64_t checkpoint_freq = 100;
  double checkpoint_seconds = 120.0;
  int keep_last = 3;
  std::string basedir = "runs";
  std::string name;
  std::string tag;
  std::string run_dir;

  // Where runs are gathered: basedir, then name and tag where they are given.
  std::filesystem::path base() const;

  void describe(Fields& field);
};

// autoscale: how --auto_scale chooses num_envs and train_batch_size.
struct AutoscaleSettings {
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

  void describe(Fields& field);
};

struct Config {
  std::string name;  // of the environment
  EnvSettings env;   // the environment holds its own parameters
  TrainerSettings trainer;
  std::vector<PolicySettings> policies;  // in the order of the file
  std::vector<int> policy_of_role;       // index into policies, by role as in Spec::roles
  SavingSettings saving;
  AutoscaleSettings autoscale;

  // Whether first episodes of an environment with this time limit are cut short, each after other steps.
  bool staggers(int time_limit) const;

  std::map<std::string, std::string> origins;  // "trainer.num_envs" to "FILE:LINE", "--set"; absent: default
  std::vector<std::string> notes;              // what people should be told: rounding, keys without effect
};

// Everything that is wrong with a configuration, one line a problem: `FILE:LINE:COL: section.key = value:
// reason`.
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

// "section.key=value", the argument of --set. Throws ConfigError when it has another shape.
Override parse_override(std::string_view argument);

// Layers, each over the one before: struct defaults, SEARCH/NAME.yaml (the first found), file, overrides in
// their order. Where the file is WarpDrive's, WarpDrive's defaults take the place of SEARCH/NAME.yaml.
struct ConfigSources {
  std::string env = {};   // --env; empty: the file's `name`
  std::string file = {};  // --config; empty: none
  std::vector<Override> overrides = {};
  std::vector<std::filesystem::path> search = {};  // folders that may hold NAME.yaml
  bool shipped = true;  // false: the environment's own defaults take the place of NAME.yaml
};

using Describe = std::function<void(Fields&)>;

// What the loader asks of an environment: its parameters, which it writes, and its roles, which follow from
// them.
struct EnvironmentAccess {
  Describe describe;
  std::function<Spec()> spec;
  std::string config = {};  // a YAML file of its own, read where the search finds no NAME.yaml
};

// Finds an environment by its own name (no alias); throws UsageError for a name that is none.
using EnvironmentLookup = std::function<EnvironmentAccess(const std::string& name)>;

// Reads and checks all layers. Throws ConfigError with all problems found.
Config load_config(const ConfigSources& sources, const EnvironmentLookup& lookup);

// The environment's own name behind WarpDrive's ("single_cartpole" is cartpole).
std::string canonical_environment(std::string_view name);

// Effective values as YAML; loads back to the same values. With origins, a comment at each value says where
// it came from.
std::string print_config(Config config, const Describe& environment, bool with_origins = true);

// Every value by its path, in print_config()'s order and words.
std::vector<std::pair<std::string, std::string>> config_values(Config config, const Describe& environment);

// 64 bits that differ when any effective value does (FNV-1a of the printed text without comments).
std::uint64_t config_hash(const Config& config, const Describe& environment);
std::uint64_t config_hash(std::string_view printed_without_origins);

// One field of a section, for help and documentation.
struct FieldInfo {
  std::string name;
  std::string type;   // "int", "number", "bool", "text", "list of int", "schedule", "a | b | c"
  std::string value;  // as YAML
  std::string range;  // "[1, 1024]", "> 0"; empty where any value will do
  std::string help;
};

// The fields that a describe function names, in its order.
std::vector<FieldInfo> list_fields(const Describe& describe);

}  // namespace wd
