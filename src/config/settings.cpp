// settings.cpp: the single table of settings: key, range, help. The defaults are in config.h.
#include <algorithm>

#include "wd/config.h"

namespace wd {

void ModelSettings::describe(Fields& field) {
  const std::vector<std::string> names = network_names();
  const std::string current = network ? network->name() : names.front();
  std::vector<const char*> words;
  for (const std::string& name : names) words.push_back(name.c_str());
  int chosen = static_cast<int>(std::ranges::find(names, current) - names.begin());
  const int before = chosen;
  field.choice("type", chosen, words, "kind of network");
  if (chosen != before) network = network_settings(names[static_cast<std::size_t>(chosen)]);
  field("separate_value", separate_value, "the value has a network of its own");
  if (network) {
    network->describe(field);
    if (network->state_size() > 0)
      field("sequence_length", sequence_length, {0, 1e6},
            "steps over which gradients reach back in time, of which a rollout has a multiple; 0: all of its "
            "steps");
  } else {
    field("fc_dims", fc_dims, {1, 65'536}, "width of each hidden layer");
    field.choice("activation", activation, kActivationNames, "after each hidden layer");
    field.choice("init_method", init_method, {"orthogonal", "xavier", "default"},
                 "first weights; default: as torch.nn.Linear");
  }
  field.choice(
      "distribution", distribution, {"gaussian", "squashed_gaussian"},
      "continuous actions: a Gaussian, cut off at the bounds, or the hyperbolic tangent of one, which "
      "stays within them");
  field("initial_log_std", initial_log_std, {-10, 2},
        "continuous actions: log of the first standard deviation");
  field("model_ckpt_filepath", model_ckpt_filepath,
        "weights to begin with (.safetensors); empty: fresh ones");
}

void PolicySettings::describe(Fields& field) {
  field("roles", roles, "roles that it acts for; empty: the role of its name, or all roles for \"shared\"");
  field("to_train", to_train, "false: it acts, and does not learn");
  std::vector<const char*> names;
  int chosen = 0;
  for (const AlgorithmRow& row : algorithms()) {
    if (std::string_view(row.name) == algorithm->name()) chosen = static_cast<int>(names.size());
    names.push_back(row.name);
  }
  const int before = chosen;
  field.choice("algorithm", chosen, names, "how it learns");
  if (chosen != before) algorithm = AlgorithmChoice::named(names[static_cast<std::size_t>(chosen)]);
  algorithm->describe(field);
}

void EnvSettings::describe(Fields& field) {
  field.choice("reset", reset, {"random", "fixed", "pool", "given"},
               "starts: drawn anew, one start for all, from a pool of drawn ones, from the file `starts`");
  field("reset_pool_size", reset_pool_size, {0, 1e7}, "starts in the pool");
  field("starts", starts, "JSON file of start states, for reset: given");
}

void TrainerSettings::describe(Fields& field) {
  field("num_envs", num_envs, {1, 1e7}, "replicas of the environment");
  field("train_batch_size", train_batch_size, {1, 1e10},
        "environment steps of one iteration, over all replicas");
  field("num_episodes", num_episodes, {1, 1e12},
        "length of training in whole episodes, where total_steps is 0");
  field("total_steps", total_steps, kSteps, "length of training in environment steps; 0: by num_episodes");
  field("seed", seed, kSeeds, "of everything random");
  field.choice("device", device, {"auto", "cpu", "cuda"}, "auto: a GPU where there is one");
  field("threads", threads, {0, 1024}, "CPU threads; 0: one for each core");
  field("chunk_rows", chunk_rows, {64, 16'777'216},
        "agent rows of one piece of the update: bounds memory, fixes sums");
  field("cuda_graphs", cuda_graphs,
        "GPU: capture rollout and update once and replay them, with the same results; unused on the CPU");
  field("staggered_resets", staggered_resets,
        "where a rollout is shorter than the time limit, and no policy learns by REINFORCE: replicas cut "
        "their first episodes short, each after another number of steps, so that they do not stay in step");
  field.choice(
      "precision", precision, {"fp32", "tf32", "bf16"},
      "of products; bf16: hidden layers and observations are bfloat16, sums, heads and weights fp32; "
      "tf32: on a GPU");
  field.choice(
      "observations", observations, {"rows", "table"},
      "table: in place of each agent's row the one table that all rows follow from, where everybody sees "
      "everybody; the first layer costs far less");
  field("max_seconds", max_seconds, {0, 1e9}, "stop after this time [s]; 0: never");
  field("stop_return", stop_return, {-1e30, 1e30},
        "stop when the first policy's recent_return reaches this (docs/metrics.md)");
  field("straggler_preempt", straggler_preempt, {0, 1},
        "several workers: once this part of them has a complete rollout, the others end theirs, after a "
        "quarter of "
        "its steps at least; 0: never");
  field("canary_freq", canary_freq, {0, 1e9},
        "several workers: iterations between comparisons of what they have learned; 0: never");
}

void SavingSettings::describe(Fields& field) {
  field("metrics_log_freq", metrics_log_freq, {1, 1e9}, "iterations from one line of metrics to the next");
  field("model_params_save_freq", model_params_save_freq, {0, 1e9},
        "iterations between saved weights; 0: at the end");
  field(
      "checkpoint_freq", checkpoint_freq, {0, 1e9},
      "iterations between checkpoints; 0: none but those at the start, at the end and by checkpoint_seconds");
  field("checkpoint_seconds", checkpoint_seconds, {0, 1e9},
        "a checkpoint is also written where the newest is older than this [s]; 0: never by time");
  field("keep_last", keep_last, {1, 1e6}, "checkpoints kept, beside the best");
  field("basedir", basedir, "folder that gathers runs");
  field("name", name, "folder within basedir");
  field("tag", tag, "folder within name");
  field("run_dir", run_dir, "this run's folder; empty: BASEDIR/NAME/TAG/ENV/DATE-TIME-SEED");
}

void AutoscaleSettings::describe(Fields& field) {
  field.choice("objective", objective, {"speed", "memory"},
               "speed: the smallest setting that is as fast as any; memory: as much as fits, as WarpDrive's");
  field("min_iterations", min_iterations, {0, 1e9},
        "iterations of total_steps that the batch must leave to learn in, where the configured one does; 0: "
        "any number");
  field("min_rollout", min_rollout, {0, 1e9},
        "least steps of a rollout; 0: three horizons of gamma and lambda, at most an episode, and for speed "
        "no fewer than configured");
  field("memory_fraction", memory_fraction, above(0, 1), "part of a GPU's memory that may be used");
  field("memory_gb", memory_gb, {0, 1e6},
        "memory that all workers together may use [GiB]: on a GPU in place of memory_fraction; 0: on the CPU "
        "80 % of what this process may have");
  field("max_envs", max_envs, {1, 1e7}, "most replicas");
  field("max_batch", max_batch, {1, 1e10}, "largest train_batch_size");
  field("max_seconds", max_seconds, {0, 1e9}, "time for all probes together [s]; 0: no limit");
  field("probe_seconds", probe_seconds, above(0, 1e6), "time measured in a probe, at least [s]");
  field("max_iteration_seconds", max_iteration_seconds, {0, 1e6},
        "speed: a setting whose iteration takes longer is too slow [s]; 0: none is");
  field.choice("scale_lr", scale_lr, {"none", "sqrt", "linear"},
               "learning rates grow with the batch: by its root, or as it does");
}

bool Config::staggers(int time_limit) const {
  const bool allowed = std::ranges::all_of(policies, [](const PolicySettings& policy) {
    return !policy.to_train || policy.algorithm->allows_staggered_resets();
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
