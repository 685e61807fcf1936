// settings.cpp: the single table of settings: key, range, help. The defaults are in config.h.
#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "wd/config.h"

namespace wd {

namespace {

// A choice among registered names. Returns whether it changed.
bool choose(Fields& field, const char* key, std::string& chosen, const std::vector<std::string>& names,
            const char* help) {
  std::vector<const char*> words;
  for (const std::string& name : names) words.push_back(name.c_str());
  const int before = static_cast<int>(std::ranges::find(names, chosen) - names.begin());
  int index = before;
  field.choice(key, index, words, help);
  chosen = names[static_cast<std::size_t>(index)];
  return index != before;
}

}  // namespace

// Networks of users have no comparison of their own: their settings are what they describe.
bool NetworkChoice::operator==(const NetworkChoice& other) const {
  if (!settings_ || !other.settings_) return !settings_ && !other.settings_;
  const auto fields_of = [](NetworkChoice network) {
    return list_fields([&](Fields& fields) { network->describe(fields); });
  };
  const auto same = [](const FieldInfo& a, const FieldInfo& b) {
    return a.name == b.name && a.value == b.value;
  };
  return std::string(settings_->name()) == other.settings_->name() &&
         std::ranges::equal(fields_of(*this), fields_of(other), same);
}

void ModelSettings::set_type(const std::string& type) {
  const NetworkChoice before = std::exchange(network, network_settings(type));
  if (before && network) network->take(*before.operator->());
  const bool remembers = network && !is_module();
  if (remembers && before && !before->is_module()) return;  // of another memory, everything is kept
  activation = remembers ? kTanh : ModelSettings().activation;
  fc_dims = remembers ? std::vector<int>{} : ModelSettings().fc_dims;
}

void ModelSettings::describe(Fields& field) {
  std::string type = network ? network->name() : network_names().front();
  if (choose(field, "type", type, network_names(), "kind of network")) set_type(type);
  field("separate_value", separate_value, "the value has a network of its own");
  describe_input(field);
  field("dueling", dueling,
        "values of choices: the network computes the value of the state and the advantage of each choice");
  field(
      "quantiles", quantiles, {1, 1024},
      "values of choices, and critics of continuous actions: the network computes so many quantiles of each "
      "value, for algorithms that learn them");
  field("reads", reads,
        "what the network reads: observation; streams of the environment by name, of numbers, or of bytes in "
        "modules; and agent_id, which of the policy's agents it acts for, as a one-hot vector");
  field(
      "critic_reads", critic_reads,
      "what the value's own network (separate_value), critics of actions and QMIX's mixer read: names as in "
      "reads, with or without observation; empty: as reads");
  field("normalize_input", normalize_input,
        "columns that the network reads of the observation, in units of their running mean and deviation, at "
        "most 10 deviations from 0; evaluations keep those of training");
  if (network) {
    network->describe(field);
    if (network->state_size() > 0)
      field("sequence_length", sequence_length, {0, 1e6},
            "steps through which gradients flow back in time; divides the "
            "rollout's steps; 0: the whole rollout; with a replay memory, divides batch_size; 0: 16");
  }
  if (!is_module()) {
    field(
        "fc_dims", fc_dims, {1, 65'536},
        "width of each hidden layer; of mingru, gru and lstm, of each in front of the one that is as wide as "
        "the memory");
    field("critic_dims", critic_dims, {1, 65'536},
          "the same for the critics of DDPG, TD3 and SAC; empty: fc_dims. Of mingru, gru and lstm, of each "
          "behind the memory, in critics of continuous actions; empty: one that is as wide");
  }
  describe_layers(field);
  field.choice("distribution", distribution, kContinuousDistributionNames,
               "continuous actions: a Gaussian that is clipped at the bounds, a Gaussian squashed by tanh to "
               "stay within them, or one whose noise is the same function of the state for several steps");
  if (distribution == kGsdeActions)
    field("noise_every", noise_every, {1, 1e6}, "steps after which that function is drawn again");
  field("initial_log_std", initial_log_std, {-10, 2},
        "continuous actions: log of the initial standard deviation; gsde: of the numbers that weigh the last "
        "hidden layer; SAC: an offset of what the network computes");
  field("model_ckpt_filepath", model_ckpt_filepath,
        "file of initial weights (.safetensors); empty: random weights");
  forget_unused();
}

void ModelSettings::describe_input(Fields& field) {
  field.choice(
      "input", input, {"observation", "entities", "choices"},
      "what the network reads: the observation; or the nearest things of each kind that it describes; or, "
      "choice by choice, the state and the choice's description, for values of choices");
  if (input == kEntityInput) {
    field("nearest", nearest, {1, kMaxNearestEntities}, "how many things of each kind it reads");
    field("half_distance", half_distance, above(0, 1e6),
          "distance at which the direction to a thing has half of its length; far things fade to 0");
    field.choice("pool", pool, {"none", "mean", "max", "mean_max"},
                 "reads also an embedding of all things: its mean, its maximum, or both");
    field("attention", attention, {0, 16},
          "reads also this many means of the embedding with learned weights");
    if (pools()) field("embedding", embedding, {1, 1024}, "numbers of the embedding of a thing");
  }
}

void ModelSettings::describe_layers(Fields& field) {
  if (has_layers()) {
    field.choice("activation", activation, kActivationNames, "activation after each hidden layer");
    field("layer_norm", layer_norm,
          "normalize the sums of each hidden layer before its activation, with a learned scale and shift");
  }
  field.choice("init_method", init_method, {"orthogonal", "xavier", "default"},
               "initial weights; default: as torch.nn.Linear");
}

// Otherwise a value of a layer of files below would stay where no file says it, and a run that goes on would
// not have it.
void ModelSettings::forget_unused() {
  const ModelSettings unused;
  if (input != kEntityInput)
    std::tie(nearest, half_distance, pool, attention) =
        std::tie(unused.nearest, unused.half_distance, unused.pool, unused.attention);
  if (!pools()) embedding = unused.embedding;
  if (is_module()) std::tie(fc_dims, critic_dims) = std::tie(unused.fc_dims, unused.critic_dims);
  if (!has_layers()) std::tie(activation, layer_norm) = std::tie(unused.activation, unused.layer_norm);
  if (state_size() == 0) sequence_length = unused.sequence_length;
  if (distribution != kGsdeActions) noise_every = unused.noise_every;
}

void PolicySettings::learn_by(const std::string& name) {
  algorithm = AlgorithmChoice::named(name);
  model = {};
  algorithm->suit(model);
}

std::int64_t PolicySettings::steps_together(std::int64_t rollout_steps) const {
  const bool windows = algorithm->traits().learns_from != LearnsFrom::kPlay;
  return windows ? model.replayed_together() : model.steps_together(rollout_steps);
}

std::int64_t PolicySettings::replicas_unit() const {
  const AlgorithmTraits traits = algorithm->traits();
  if (traits.learns_from == LearnsFrom::kPlay) return traits.replicas_unit;
  return std::max<std::int64_t>(traits.replicas_unit / steps_together(1), 1);
}

int PolicySettings::num_opponents() const {
  std::set<std::string> others;
  for (const ListedPlayer& listed : opponents)
    if (listed.player.kind != PlayerSpec::kSelf) others.insert(listed.player.text());
  return static_cast<int>(others.size());
}

void PoolSettings::describe(Fields& field) {
  field("size", size, {1, 1000}, "copies; the oldest one is left out for a new one");
  field("every", every, {1, 1e15}, "environment steps from copy to copy");
  choose(field, "draw", draw, {"uniform", "latest", "pfsp"}, "which of them plays a game");
  field("exponent", exponent, {0.0, 100.0},
        "pfsp: the weight of a copy is (1 - w)^exponent, w the win rate against it");
  field("win_above", win_above, {}, "a game with a greater return is won, with this one half");
  field("from", from, "runs whose weights it begins with; empty: the policy's first weights");
}

void PolicySettings::describe(Fields& field) {
  field("roles", roles, "roles that it acts for; empty: the role with its name, or all roles for \"shared\"");
  field("agents", agents,
        "agents that it acts for, as [tagger, \"runner 0-49\"], by their numbers within a role, or by ids; "
        "empty: all agents of the roles");
  field("to_train", to_train, "false: the policy acts but does not learn");
  field(
      "average", average, {0, 0.999'999},
      "keep an exponential moving average of the weights, which moves after each iteration's update: average "
      "= 0.99 * average + 0.01 * weights; saved beside the weights as NAME.average (docs/teams.md); 0: none");
  std::string name_of_algorithm = algorithm->name();
  if (choose(field, "algorithm", name_of_algorithm, algorithm_names(), "learning algorithm"))
    algorithm = AlgorithmChoice::named(name_of_algorithm);
  algorithm->describe(field);
}

void EnvSettings::describe(Fields& field) {
  field.choice(
      "reset", reset, {"random", "fixed", "pool", "given", "played"},
      "start states: random for each episode, the same for all, from a pool of random ones, from "
      "the file `starts`, or played: random, and nothing is learned before `played_moves` were made");
  field("reset_pool_size", reset_pool_size, {0, 1e7}, "start states in the pool");
  field("starts", starts, "JSON file of start states, for reset: given");
  field("played_moves", played_moves, {0, 1e9},
        "for reset: played, the least and the most steps before an episode counts, drawn by episode");
  field("played_by_policy", played_by_policy, "whether policies make these moves; else legal ones are drawn");
}

void TrainerSettings::describe(Fields& field) {
  field("num_envs", num_envs, {1, 1e7}, "replicas of the environment");
  field("train_batch_size", train_batch_size, {1, 1e10},
        "environment steps per iteration, summed over replicas");
  field("num_episodes", num_episodes, {1, 1e12},
        "length of training in full-length episodes, used if total_steps is 0");
  field("total_steps", total_steps, kSteps, "length of training in environment steps; 0: use num_episodes");
  field("seed", seed, kSeeds, "seed of all random numbers");
  field("population", population, {0, 1000},
        "so many trainings in one program, of which member k (from 0) has the seed `seed` + k and the run "
        "folder RUN/k (docs/populations.md); 0: one training");
  field.choice("device", device, {"auto", "cpu", "cuda"}, "auto: a GPU if there is one, else the CPU");
  field("threads", threads, {0, 1024}, "CPU threads; 0: one per core");
  field("chunk_rows", chunk_rows, {64, 16'777'216},
        "GPU: agent rows per chunk of the update: limits memory; results depend on it by rounding");
  field("cuda_graphs", cuda_graphs,
        "GPU: capture the rollout and the update once and replay them, with the same results");
  field("time_algorithms", time_algorithms,
        "GPU: time several algorithms of each matrix product and use the fastest, which checkpoints keep; "
        "false: use the one that cuBLASLt suggests, so that every start has the same bits");
  field(
      "staggered_resets", staggered_resets,
      "replicas end their first episodes after different numbers of steps, so that they do not reset at the "
      "same time; used if rollouts are shorter than the time limit and no policy uses REINFORCE");
  field.choice(
      "precision", precision, {"fp32", "tf32", "bf16"},
      "number format of matrix products; bf16: hidden layers and observations in bfloat16, but sums, output "
      "layers and weights in fp32; tf32: GPU only");
  field.choice(
      "observations", observations, {"rows", "table", "auto"},
      "table: store one table per replica instead of a row per agent, if all agents see all others; "
      "the first layer costs far less; auto: a table if there is one and every network reads entities");
  field("max_seconds", max_seconds, {0, 1e9}, "stop after this time [s]; 0: no limit");
  field("stop_return", stop_return, {-1e30, 1e30},
        "stop when the first policy's return reaches this (docs/metrics.md)");
  field.choice(
      "stop_on", stop_on, {"training", "eval"},
      "the return that stop_return and `best` use: recent_return and that of fresh episodes; or both that "
      "of evaluations (eval.every)");
  field("straggler_preempt", straggler_preempt, {0, 1},
        "several workers: once this fraction of them has finished its rollout, the others cut theirs short, "
        "but "
        "not before a quarter of its steps; 0: never");
  field("canary_freq", canary_freq, {0, 1e9},
        "several workers: intervals between checks that all have the same weights; 0: never");
  field.choice(
      "intervals", intervals, {"auto", "iterations", "env_steps"},
      "what canary_freq, eval.every, play.every and those of saving count; auto: environment steps if "
      "a policy learns from replay, whose iterations are short, and iterations otherwise");
  field(
      "offline", offline,
      "folder that the command `record` wrote: learn from its transitions, and play nothing but evaluations "
      "(docs/algorithms.md); empty: learn from what is played");
}

void SavingSettings::describe(Fields& field) {
  field("metrics_log_freq", metrics_log_freq, {1, 1e9},
        "iterations, or environment steps (trainer.intervals), between lines of metrics");
  field("model_params_save_freq", model_params_save_freq, {0, 1e9},
        "the same between saved weights; 0: only at the end");
  field("checkpoint_freq", checkpoint_freq, {0, 1e9},
        "the same between checkpoints; 0: only at the start, at the end and by checkpoint_seconds");
  field("checkpoint_seconds", checkpoint_seconds, {0, 1e9},
        "a checkpoint is also written if the newest is older than this [s]; 0: never by time");
  field("keep_last", keep_last, {1, 1e6}, "number of checkpoints to keep, in addition to the best");
  field.choice(
      "replay", replay, {"always", "last", "never"},
      "which checkpoints hold the replay memories of policies: all, only the newest, or none; training "
      "that goes on from one without them fills them anew, and is not the same "
      "as if it had never stopped");
  field("basedir", basedir, "parent folder of all runs");
  field("name", name, "folder within basedir");
  field("tag", tag, "folder within name");
  field("run_dir", run_dir, "this run's folder; empty: BASEDIR/NAME/TAG/ENV/DATE-TIME-SEED");
}

std::vector<PlayerSpec> EvalSettings::opponents() const {
  if (opponent == "both") return {{PlayerSpec::kRandom}, {PlayerSpec::kScripted}};
  const PlayerSpec player = PlayerSpec::of(opponent);
  if (opponent == "none" || player.kind == PlayerSpec::kSelf) return {};
  return {player};
}

void EvalSettings::describe(Fields& field) {
  field("every", every, {0, 1e9},
        "iterations, or environment steps (trainer.intervals), between evaluations, and one at the end; 0: "
        "none");
  field("episodes", episodes, {1, 1e6}, "episodes per match");
  field("seed", seed, TrainerSettings::kSeeds,
        "seed of the episodes: every evaluation plays the same starts");
  field("greedy", greedy, "policies take their most likely action");
  field("opponent", opponent,
        "play each role in turn against such players: random, scripted, a run or a checkpoint; both: random "
        "ones, then scripted ones; none: the policies play with each other");
  field.choice("device", device, {"same", "cpu", "cuda"},
               "where episodes are played that are not trained with; same: on the device of training");
}

void PlaySettings::describe(Fields& field) {
  field("every", every, {0, 1e9},
        "iterations, or environment steps (trainer.intervals), between recorded episodes, "
        "RUN/rollouts/ITERATION.html; 0: none");
  field("max_steps", max_steps, {1, 1e6}, "steps of an episode to record at most");
}

double AutoscaleSettings::gpu_budget(double total, int workers) const {
  return memory_gb > 0.0 ? memory_gb * 0x1p30 / workers : memory_fraction * total;
}

void AutoscaleSettings::describe(Fields& field) {
  field.choice(
      "objective", objective, {"speed", "memory"},
      "speed: the smallest setting that is as fast as any; memory: the largest that fits, as in WarpDrive");
  field("min_iterations", min_iterations, {0, 1e9},
        "the batch must leave this many iterations within total_steps, if the "
        "configured one does; 0: any number");
  field(
      "min_rollout", min_rollout, {0, 1e9},
      "minimum steps per rollout; 0: three horizons of gamma and lambda, at most one episode, and for speed "
      "no fewer than configured");
  field("memory_fraction", memory_fraction, above(0, 1), "fraction of a GPU's memory that may be used");
  field("memory_gb", memory_gb, {0, 1e6},
        "memory that all workers together may use [GiB]; overrides memory_fraction on a GPU; 0: on the CPU "
        "80 % "
        "of what is available to this process");
  field("max_envs", max_envs, {1, 1e7}, "maximum number of replicas");
  field("max_batch", max_batch, {1, 1e10}, "maximum train_batch_size");
  field("max_seconds", max_seconds, {0, 1e9}, "maximum time for all probes together [s]; 0: no limit");
  field("probe_seconds", probe_seconds, above(0, 1e6), "minimum time measured per probe [s]");
  field("max_iteration_seconds", max_iteration_seconds, {0, 1e6},
        "speed: maximum time per iteration [s]; slower settings are not chosen; 0: no limit");
  field.choice("scale_lr", scale_lr, {"none", "sqrt", "linear"},
               "scale learning rates with the batch: by its square root, or linearly");
}

bool Config::staggers(int time_limit) const {
  const bool allowed = std::ranges::all_of(policies, [](const PolicySettings& policy) {
    return !policy.to_train || policy.algorithm->traits().staggered_resets;
  });
  return trainer.staggered_resets && allowed && trainer.rollout_steps() < time_limit;
}

std::filesystem::path SavingSettings::base() const {
  std::filesystem::path path(basedir.empty() ? "." : basedir);
  if (!name.empty()) path /= name;
  if (!tag.empty()) path /= tag;
  return path;
}

}  // namespace wd
