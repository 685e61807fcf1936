// autoscale.cpp: derives limits and sizes from the machine and the configuration, runs the search, and caches
// its result.
#include "src/autoscale/autoscale.h"

#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "src/autoscale/cache.h"
#include "src/autoscale/climb.h"
#include "src/autoscale/learning.h"
#include "src/autoscale/memory_needed.h"
#include "src/autoscale/probe.h"
#include "src/autoscale/search.h"
#include "src/base/binary_path.h"
#include "src/base/files.h"
#include "src/base/host.h"
#include "src/base/host_memory.h"
#include "src/base/join.h"
#include "src/base/program_name.h"
#include "src/config/numbers.h"
#include "src/launcher/devices.h"
#include "src/launcher/options.h"
#include "src/report/format.h"
#include "src/worker/guarded.h"
#include "wd/detail/vectors.h"
#include "wd/error.h"

namespace wd {
namespace scaling {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr double kPartOfHost = 0.8;  // of the memory available to this process
constexpr const char* kMemoryPath = "autoscale.memory_gb";

// --- the machine -------------------------------------------------------------------------------------------

struct Machine {
  std::string device, driver, words;  // driver and device for the cache key, words for messages
  std::uint64_t memory_bytes = 0;     // per worker
  std::vector<std::string> notes;
};

std::uint64_t host_budget(const AutoscaleSettings& settings) {
  const double wanted = settings.memory_gb * kGiB;
  if (wanted == 0.0)
    return static_cast<std::uint64_t>(kPartOfHost *
                                      static_cast<double>(memory_budget(machine_memory()).bytes));
  for (const Allowance& allowance : memory_allowances(machine_memory())) {
    if (wanted <= static_cast<double>(allowance.bytes)) continue;
    throw UsageError(concat(kMemoryPath, " = ", settings.memory_gb, ": this process may have ",
                            report::format_bytes(allowance.bytes), " (", allowance.source, ")"));
  }
  return static_cast<std::uint64_t>(wanted);
}

Machine describe_host(const Config& config, int num_workers) {
  const int threads =
      config.trainer.threads > 0 ? config.trainer.threads : static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  Machine machine;
  machine.device = concat(cpu_model(), ", ", threads, " threads, ", vectors_in_words());
  machine.words = machine.device;
  machine.memory_bytes = host_budget(config.autoscale) / static_cast<std::uint64_t>(num_workers);
  return machine;
}

Machine describe_gpus(const Config& config, const LaunchOptions& launch) {
  Machine machine;
  std::vector<launcher::GpuFacts> all;
  for (const std::string& name : launcher::choose_gpus(launch)) all.push_back(launcher::gpu_facts(name));
  std::uint64_t least = all.front().total_bytes;
  bool uneven = false;
  for (const launcher::GpuFacts& gpu : all) {
    machine.device += gpu.uuid + ' ';
    least = std::min(least, gpu.total_bytes);
    uneven = uneven || gpu.product != all.front().product || gpu.total_bytes != all.front().total_bytes;
    constexpr std::uint64_t kIdle = std::uint64_t{1} << 30;  // a driver keeps less than this for itself
    if (gpu.used_bytes > kIdle) {
      machine.notes.push_back(concat("GPU ", gpu.uuid, " is in use: ", report::format_bytes(gpu.used_bytes),
                                     " belong to others, which slow down probes and leave less"));
    }
  }
  machine.driver = all.front().driver;
  machine.words = concat(all.size() > 1 ? concat(all.size(), " x ") : "", all.front().product);
  if (uneven) {
    std::vector<std::string> list;
    for (const launcher::GpuFacts& gpu : all)
      list.push_back(concat(gpu.product, " with ", report::format_bytes(gpu.total_bytes)));
    machine.notes.push_back(
        concat("the GPUs differ (", join(list), "): the smallest decides on memory, the slowest on speed"));
  }
  const double wanted = config.autoscale.memory_gb * kGiB / static_cast<double>(all.size());
  if (wanted > static_cast<double>(least))
    throw UsageError(concat(kMemoryPath, " = ", config.autoscale.memory_gb, ": the smallest of ", all.size(),
                            " GPUs has ", report::format_bytes(least)));
  machine.memory_bytes = static_cast<std::uint64_t>(
      config.autoscale.gpu_budget(static_cast<double>(least), static_cast<int>(all.size())));
  return machine;
}

// --- search options ----------------------------------------------------------------------------------------

// Computes the sizes from rollouts of one and of two steps. What opponents take grows less with more
// replicas: so that no setting is ruled out that fits, it grows as it does with very many.
Sizes sizes_of(const Config& config, const Environment& environment, int num_workers, Device device) {
  const auto bytes = [&](std::int64_t steps) {
    return rollout_bytes(config, environment, steps, 1) +
           activation_bytes(config, environment, steps, 1, kReuseYes, device);
  };
  const auto of_opponents = [&](std::int64_t replicas) {
    return opponent_bytes(config, environment, replicas, device);
  };
  constexpr std::int64_t kMany = std::int64_t{1} << 20;
  const double one = bytes(1), step = bytes(2) - one;
  const double opponents = (of_opponents(2 * kMany) - of_opponents(kMany)) / kMany;
  return {.fixed = algorithm_bytes(config, environment, num_workers) + of_opponents(1) - opponents,
          .per_replica = one - step + opponents,
          .per_replica_step = step,
          .kept_per_replica_step = activation_bytes(config, environment, 1, 1, kReuseAuto, device)};
}

// --- the cache ---------------------------------------------------------------------------------------------

// Hashes this program and the library that contains this code.
std::string build_hash() {
  std::string text;
  for (const std::string& path : {std::string("/proc/self/exe"),
                                  binary_path(reinterpret_cast<const void*>(&search_options)).string()}) {
    const std::string all = read_whole(path).value_or("");
    text += concat(XXH3_64bits(all.data(), all.size()), ' ');
  }
  return text;
}

// Everything that the result of a search depends on. No value has a line end, so different values give
// different texts.
std::string key_of(const Config& config, Environment& environment, const Machine& machine,
                   const SearchOptions& search) {
  static const std::vector<std::string> kTrainer = {"trainer.num_envs",   "trainer.train_batch_size",
                                                    "trainer.chunk_rows", "trainer.threads",
                                                    "trainer.precision",  "trainer.observations"};
  const auto counts = [](const std::string& path) {
    return path == "name" || path == "source" || path.starts_with("env.") || path.starts_with("policy.") ||
           (path.starts_with("autoscale.") && path != "autoscale.scale_lr") ||
           std::ranges::count(kTrainer, path) > 0;
  };
  std::string key = concat(machine.device, "\n", machine.driver, "\n", build_hash(), "\n");
  for (const auto& [path, value] :
       config_values(config, [&](Fields& fields) { environment.describe(fields); })) {
    if (counts(path)) key += path + " = " + value + '\n';
  }
  return concat(key, search.num_workers, " workers, a batch of at most ", search.limits.max_batch,
                ", rollouts of at least ", search.min_rollout);
}

// --- learning rates ----------------------------------------------------------------------------------------

std::string scaled(const Schedule& schedule, double factor) {
  std::string text;
  for (const Schedule::Point& point : schedule.points) {
    text += concat(text.empty() ? "[" : ", [", config::format(point.step), ", ",
                   config::format(factor * point.value), "]");
  }
  return "[" + text + "]";
}

// Rows that an epoch of the policy learns from, apart from rounding to whole steps.
double rows_of(const PolicySettings& policy, const Spec& spec, const Probe& probe) {
  const std::int64_t limit = policy.algorithm->traits().row_limit;
  const std::int64_t all =
      probe.batch() * training_shape(policy, spec, probe.num_envs, probe.rollout_steps).num_agents;
  return static_cast<double>(limit > 0 ? std::min(limit, all) : all);
}

// Returns the settings that the chosen probe implies: replicas, batch and, with autoscale.scale_lr, learning
// rates, which follow the rows that a policy learns from.
std::vector<Override> settings_of(const SearchResult& result, const Config& config, const Spec& spec) {
  constexpr const char* kOption = "--auto_scale";
  std::vector<Override> settings = {{"trainer.num_envs", concat(result.chosen.num_envs), kOption},
                                    {"trainer.train_batch_size", concat(result.chosen.batch()), kOption}};
  if (config.autoscale.scale_lr == kScaleLrNone) return settings;
  const Probe before = {config.trainer.num_envs, config.trainer.rollout_steps()};
  for (const PolicySettings& policy : config.policies) {
    if (policy.algorithm->traits().short_iterations) continue;  // its batches stay as they are
    const double growth = rows_of(policy, spec, result.chosen) / rows_of(policy, spec, before);
    if (growth == 1.0) continue;
    const double factor = config.autoscale.scale_lr == kScaleLrSqrt ? std::sqrt(growth) : growth;
    settings.push_back(
        {concat("policy.", policy.name, ".lr"), scaled(policy.algorithm->learning_rate(), factor), kOption});
  }
  return settings;
}

std::string batch_note(const SearchResult& result, const Config& config) {
  const std::int64_t before = config.trainer.train_batch_size, now = result.chosen.batch();
  const std::string change = concat("train_batch_size goes from ", before, " to ", now, ": ");
  if (all_have_short_iterations(config))
    return change + "batch_size and replay_ratio stay, so as much is learned from each step";
  if (config.autoscale.scale_lr != kScaleLrNone)
    return change +
           "learning rates are scaled with it; entropy_coeff and num_minibatches stay as they were chosen "
           "for the former";
  return change +
         "lr, entropy_coeff and num_minibatches were chosen for the former; autoscale.scale_lr can scale "
         "learning rates";
}

// Notes on settings that the search excluded for the sake of learning, and on values that may be too small
// for it.
std::vector<std::string> learning_notes(const SearchResult& result, const Config& config, const Spec& spec) {
  const AutoscaleSettings& settings = config.autoscale;
  const std::int64_t batch = result.chosen.batch(), steps = result.chosen.rollout_steps,
                     iterations = iterations_of(config, batch);
  std::vector<std::string> notes;
  const auto most = max_batch_of(config);
  const bool bound = most && *most < settings.max_batch && result.at_max_batch && 2 * batch > *most;
  if (bound) {
    const bool configured = *most == config.trainer.train_batch_size;
    notes.push_back(
        concat("the batch ends where autoscale.min_iterations = ", settings.min_iterations, " says, at ",
               *most, configured ? ", which is the configured one" : "",
               ", though a larger one may be faster: trainer.total_steps = ", config.trainer.total_steps,
               " are ", iterations,
               " iterations of what was chosen; more total_steps, or a lower min_iterations, let it grow"));
  } else if (iterations < AutoscaleSettings().min_iterations && batch > config.trainer.train_batch_size) {
    notes.push_back(
        concat("trainer.total_steps = ", config.trainer.total_steps, " are ", iterations,
               " iterations of a batch of ", batch,
               ", which may be too few to learn in: raise total_steps or autoscale.min_iterations"));
  }
  const std::int64_t enough = enough_steps(config, spec.time_limit);
  if (steps < enough) {
    notes.push_back(concat("rollouts of ", steps,
                           " steps cut advantages short, for which gamma and gae_lambda ask ", enough,
                           ": raise autoscale.min_rollout"));
  } else if (config.trainer.rollout_steps() < enough) {
    notes.push_back(concat("rollouts have ", steps, " steps, not the configured ",
                           config.trainer.rollout_steps(), ", since gamma and gae_lambda ask for ", enough,
                           ": autoscale.min_rollout allows fewer"));
  }
  return notes;
}

[[noreturn]] void fail(const SearchResult& result, const Limits& limits) {
  if (result.status == Status::kFailed)
    throw std::runtime_error("autoscale: a probe failed: " + result.reason);
  std::string why;
  for (const Trial& one : result.trials) {
    if (one.outcome.kind != Kind::kFits && !one.outcome.detail.empty())
      why = concat(" (", one.probe.num_envs, " replicas of ", one.probe.rollout_steps,
                   " steps: ", one.outcome.detail, ")");
  }
  throw UsageError(
      concat("autoscale: not even the smallest setting fits into ", report::format_bytes(limits.memory_bytes),
             " a worker", why, ": ", result.reason,
             "; raise autoscale.memory_gb, autoscale.max_seconds or autoscale.max_iteration_seconds, lower "
             "autoscale.min_rollout or trainer.chunk_rows, "
             "or make networks or environment smaller"));
}

Report searched(const Config& config, const Machine& machine, const SearchOptions& search_for,
                const AutoscaleOptions& options) {
  Report report{.env = config.name,
                .device = machine.words,
                .num_workers = search_for.num_workers,
                .objective = search_for.objective,
                .limits = search_for.limits};
  report.result = search(
      search_for,
      prober(options.launch, own_command(), config.autoscale, options.launch.gpus ? 0 : machine.memory_bytes),
      options.observe);
  if (report.result.status != Status::kChosen) fail(report.result, search_for.limits);
  return report;
}

}  // namespace

namespace {

// So that a share of max_rows rows has a step, or a sequence, of every replica, and one for every minibatch.
void limit_rows(SearchOptions& options, const Config& config, const Spec& spec) {
  for (const PolicySettings& policy : config.policies) {
    const std::int64_t rows = policy.algorithm->traits().row_limit;
    if (!policy.to_train || rows == 0) continue;
    const TrainingShape one = training_shape(policy, spec, 1, 1);
    const bool whole_rollouts = policy.model.state_size() > 0 && policy.model.sequence_length == 0;
    const std::string from = concat("policy.", policy.name, ".max_rows = ", rows);
    const auto lower = [&](std::int64_t& limit, std::string& origin, std::int64_t most) {
      if (most < limit) limit = most, origin = from;
    };
    // At most (all - M + 1) replicas: a share of S units each is S E > all - E units, which are M at least.
    if (whole_rollouts)
      lower(options.limits.max_batch, options.max_batch_from, rows / one.num_agents);
    else
      lower(options.limits.max_envs, options.max_envs_from,
            rows / one.least_rows() - policy.algorithm->traits().minibatches + 1);
  }
}

// Replicas are multiples of the batches that algorithms draw from them, or, where that is too many, the
// largest number of which every batch is a multiple.
void share_batches(SearchOptions& options, const Config& config) {
  const std::int64_t most = std::min(options.limits.max_envs, options.limits.max_batch / min_steps(options));
  if (std::lcm(std::int64_t{options.num_workers}, options.envs_unit) <= most) return;
  const auto is_shared = [&](std::int64_t replicas) {
    return replicas % options.num_workers == 0 &&
           std::ranges::all_of(config.policies, [&](const PolicySettings& policy) {
             const std::int64_t unit = policy.replicas_unit();
             return !policy.to_train || unit == 1 || unit % replicas == 0;
           });
  };
  for (std::int64_t replicas = most; replicas > 0; --replicas) {
    if (!is_shared(replicas)) continue;
    options.envs_unit = options.limits.max_envs = replicas;
    options.max_envs_from = "what divides batch_size";
    return;
  }
}

}  // namespace

SearchOptions search_options(const Config& config, const Environment& environment, int num_workers,
                             std::uint64_t memory, Device device) {
  const AutoscaleSettings& settings = config.autoscale;
  SearchOptions options;
  options.start = {config.trainer.num_envs, config.trainer.rollout_steps()};
  options.num_workers = num_workers;
  options.objective = settings.objective == kObjectiveMemory ? Objective::kMemory : Objective::kSpeed;
  options.limits = {.memory_bytes = memory,
                    .max_envs = settings.max_envs,
                    .max_batch = settings.max_batch,
                    .max_seconds = settings.max_seconds};
  if (const auto most = max_batch_of(config); most && *most < settings.max_batch) {
    options.limits.max_batch = *most;
    options.max_batch_from = concat("autoscale.min_iterations = ", settings.min_iterations);
  }
  options.min_rollout =
      min_rollout_of(config, environment.spec().time_limit, num_workers, options.limits.max_batch);
  for (const PolicySettings& policy : config.policies) {
    const std::int64_t minibatches = policy.algorithm->traits().minibatches,
                       length = policy.model.sequence_length;
    const bool sequences =
        policy.model.state_size() > 0 && policy.algorithm->traits().learns_from == LearnsFrom::kPlay;
    if (sequences && length == 0) {  // a sequence is a replica's whole rollout
      options.min_envs = std::max(options.min_envs, minibatches);
    } else if (sequences) {
      options.rollout_unit = std::lcm(options.rollout_unit, length);
      options.limits.min_batch = std::max(options.limits.min_batch, minibatches * length);
    } else {
      options.limits.min_batch = std::max(options.limits.min_batch, minibatches);
    }
  }
  for (const PolicySettings& policy : config.policies) {
    if (!policy.to_train) continue;
    options.envs_unit = std::lcm(options.envs_unit, policy.replicas_unit());
    const std::int64_t most = policy.algorithm->traits().max_batch;
    if (most == 0 || most >= options.limits.max_batch) continue;
    options.limits.max_batch = most;
    options.max_batch_from = concat("what policy.", policy.name, " can learn from");
  }
  share_batches(options, config);
  limit_rows(options, config, environment.spec());
  options.sizes = sizes_of(config, environment, num_workers, device);
  return options;
}

Autoscaled autoscaled(Report report, const Config& config, const Spec& spec) {
  report.total_steps = config.trainer.total_steps;
  Autoscaled done;
  done.result = report.result;
  done.settings = settings_of(report.result, config, spec);
  if (report.result.chosen.batch() != config.trainer.train_batch_size)
    done.notes.push_back(batch_note(report.result, config));
  for (std::string& note : learning_notes(report.result, config, spec)) done.notes.push_back(std::move(note));
  done.json = report_json(report);
  return done;
}

}  // namespace scaling

Autoscaled autoscale(const Config& config, Environment& environment, const AutoscaleOptions& options) {
  using namespace scaling;
  if (const char* const order = std::getenv(kProbeVariable); order != nullptr)
    std::_Exit(guarded([&] { return run_probe(parse_order(order), config, environment); }));
  if (options.launch.num_nodes > 1) {
    throw UsageError(
        "--auto_scale searches on one machine: run it on one of them without --num_nodes, then start all "
        "with the --set options "
        "that it prints, times the number of machines");
  }
  const int workers = options.launch.num_workers;
  const Machine machine =
      options.launch.gpus ? describe_gpus(config, options.launch) : describe_host(config, workers);
  SearchOptions search_for = search_options(config, environment, workers, machine.memory_bytes,
                                            {options.launch.gpus ? DeviceKind::kCuda : DeviceKind::kCpu});
  if (options.launch.gpus)
    search_for.sizes.room_with_kept =
        AutoscaleSettings::kShareWithKept * static_cast<double>(machine.memory_bytes);
  const std::string key = key_of(config, environment, machine, search_for);
  const std::filesystem::path folder = cache_folder();
  Cached cached;
  if (!options.refresh && !folder.empty()) cached = read_cache(folder, key, workers, search_for.limits);
  std::vector<std::string> notes = machine.notes;
  if (!cached.warning.empty()) notes.push_back(cached.warning);
  const Report report = cached.report ? *cached.report : searched(config, machine, search_for, options);
  if (!cached.report && !folder.empty()) {
    try {
      write_cache(folder, key, report);
    } catch (const std::runtime_error& error) {
      notes.push_back(concat("not kept for the next time: ", error.what()));
    }
  }
  Autoscaled done = autoscaled(report, config, environment.spec());
  done.cached = cached.report.has_value();
  done.notes.insert(done.notes.begin(), notes.begin(), notes.end());
  return done;
}

}  // namespace wd
