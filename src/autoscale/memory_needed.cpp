// memory_needed.cpp: adds up the sizes that follow from the configuration and compares them with the
// machine's limits.
#include "src/autoscale/memory_needed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "src/base/host_memory.h"
#include "src/config/heads.h"
#include "src/device/device.h"
#include "src/evaluation/evaluator.h"
#include "src/game/opponents.h"
#include "src/policy/bank.h"
#include "src/recorded/fields.h"
#include "src/recorded/recording.h"
#include "src/report/format.h"
#include "src/report/plain_error.h"
#include "src/rollout/minibatches.h"
#include "src/trainer/played.h"
#include "wd/algorithms.h"
#include "wd/detail/parallel.h"
#include "wd/error.h"
#include "wd/model.h"
#include "wd/trajectory.h"

namespace wd::scaling {
namespace {

std::string amount(double bytes) {
  return report::format_bytes(static_cast<std::uint64_t>(std::min(bytes, 0x1p62)));
}

// What the host lets this process have, or none if it is not known.
std::optional<Allowance> host_room() {
  const std::vector<Allowance> allowances = memory_allowances(machine_memory());
  if (allowances.empty()) return {};
  return *std::ranges::min_element(allowances, {}, &Allowance::bytes);
}

// The memory of one worker's share of this machine, or none if it is not known.
std::optional<Allowance> room(const Job& job, Device device) {
  if (device.is_cuda()) {
    const std::optional<GpuMemory> memory = gpu_memory();
    return memory ? std::optional(Allowance{memory->total, "the GPU"}) : std::nullopt;
  }
  std::optional<Allowance> limit = host_room();
  if (!limit || job.local_workers == 1) return limit;
  limit->bytes /= static_cast<std::uint64_t>(job.local_workers);
  limit->source += concat(", for each of ", job.local_workers, " workers");
  return limit;
}

std::string parts_text(const MemoryNeeded& needed) {
  std::array<std::pair<const char*, double>, 10> parts{{{"observations", needed.observations},
                                                        {"other buffers", needed.other_buffers},
                                                        {"replicas", needed.replicas},
                                                        {"networks", needed.networks},
                                                        {"activations", needed.activations},
                                                        {"algorithms", needed.algorithms},
                                                        {"minibatches", needed.minibatches},
                                                        {"opponents", needed.opponents},
                                                        {"a checkpoint's copies", needed.checkpoint},
                                                        {"evaluations", needed.evaluation}}};
  std::ranges::stable_sort(parts, std::greater(), &std::pair<const char*, double>::second);
  std::string text;
  for (const auto& [name, bytes] : parts)
    if (bytes > 0.0) text += concat(text.empty() ? "" : ", ", name, ' ', amount(bytes));
  return text;
}

// Of one policy: its networks, the numbers that follow them, and its critics; in bf16 with their shadow,
// which `stored` tells; `learned`: with gradients and moments.
double network_bytes(const PolicyLayout& layout, const PolicySettings& policy, Precision precision,
                     Precision stored, bool learned) {
  const AlgorithmTraits traits = policy.algorithm->traits();
  const double critics =
      traits.critics == 0 ? 0.0
                          : model_bytes(make_critics(layout, policy.model,
                                                     {traits.critics, policy.model.quantiles}, {}, precision),
                                        0, stored, learned);
  return model_bytes(make_networks(layout, policy.model, traits.output, {}, precision, {}, traits.mixer),
                     Head::of(layout.action_space, policy.model, traits.output)
                         .num_log_std(layout.action_space, policy.model),
                     stored, learned) +
         critics;
}

// Runs that cannot be read, of which the trainer tells, count as copies of the policy.
OpponentList found_opponents(const Config& config, const Environment& environment,
                             const PolicySettings& policy) {
  try {
    return find_opponents(config, environment, policy);
  } catch (const UsageError&) {
    OpponentList list;
    for (const ListedPlayer& listed : policy.opponents) {
      if (listed.player.kind == PlayerSpec::kSelf) continue;
      FoundPlayer& found = list.others.emplace_back(FoundPlayer{listed.player});
      if (listed.player.kind == PlayerSpec::kRun)
        found.frozen = std::make_shared<const FrozenPolicy>(FrozenPolicy{.path = {}, .settings = policy});
      if (listed.player.kind == PlayerSpec::kPool) list.pool = listed.pool;
    }
    return list;
  }
}

// Of one replica: what an opponent writes that acts outside of a bank.
double acting_bytes(const PolicyLayout& layout, bool is_policy) {
  double bytes = 0.0;
  for (const BufferField& field : buffer_fields()) {
    const auto is = [&](auto... tensors) { return ((field.tensor == tensors) || ...); };
    using P = PolicyBuffers;
    if (is(&P::action) || (is_policy && is(&P::value, &P::log_prob, &P::mask))) bytes += field.bytes(layout);
    if (is_policy && is(&P::state, &P::noise)) bytes += 2.0 * field.bytes(layout);
  }
  return bytes;
}

// Of one replica: its state, the state at the start of the rollout (src/trainer/evidence.h), and the rewards
// that were dropped.
double state_bytes(const Environment& environment) {
  const StateLayout layout = environment.layout();
  return 2.0 * layout.block_bytes + static_cast<double>(sizeof(DroppedReward)) * layout.num_agents;
}

// Whether this worker evaluates on another device than it trains on.
bool evaluates_elsewhere(const Job& job) {
  return job.evaluation && job.evaluation->is_cuda() != job.device.is_cuda() && job.config.eval.every > 0;
}

std::string of_limit(const std::optional<Allowance>& limit) {
  return limit ? concat(" of ", report::format_bytes(limit->bytes), " (", limit->source, ")") : "";
}

// Of evaluations on the CPU, if training is on a GPU.
void check_evaluation_memory(const Job& job, const Allowance& limit) {
  if (!evaluates_elsewhere(job)) return;
  const double bytes = evaluation_bytes(job.config, job.environment);
  if (bytes <= static_cast<double>(limit.bytes)) return;
  throw UsageError(concat("not enough memory: evaluations on the CPU need at least ", amount(bytes), ", and ",
                          report::format_bytes(limit.bytes), " can be had (", limit.source,
                          "): lower eval.episodes, or set eval.device to same"));
}

// On a CPU, also what a checkpoint copies of the rollout.
MemoryNeeded needed_by_one(const Job& job) {
  MemoryNeeded needed = memory_needed(job.config, job.environment, job.world_size, job.device);
  if (job.evaluation && !evaluates_elsewhere(job))
    needed.evaluation = evaluation_bytes(job.config, job.environment);
  const TrainerSettings& trainer = job.config.trainer;
  if (job.device.is_cuda()) return needed;  // its copies are in host memory
  const double replicas = static_cast<double>(trainer.num_envs) / job.world_size;
  needed.checkpoint = needed.observations / (static_cast<double>(trainer.rollout_steps()) + 1.0) +
                      replicas * job.environment.layout().block_bytes;
  return needed;
}

// Of the members of a population that train at the same time.
MemoryNeeded needed_by(const Job& job) {
  const int members = job.config.trainer.population;
  const bool in_lockstep = job.device.is_cuda() || job.world_size > 1;
  return needed_by_one(job) * (members == 0 ? 1 : in_lockstep ? members : std::min(members, num_threads()));
}

// "lower policy.cart.buffer_size", of the policies with a replay memory, if memories take most of what is
// needed: with how many transitions all would fit. Otherwise "".
std::string smaller_memories(const Job& job, const MemoryNeeded& needed, double limit) {
  if (2.0 * needed.algorithms < needed.total()) return {};
  const double fits = std::max(limit - (needed.total() - needed.algorithms), 0.0) / needed.algorithms;
  std::string text;
  for (const PolicySettings& policy : job.config.policies) {
    const auto* const settings = dynamic_cast<const OffPolicySettings*>(&*policy.algorithm);
    if (settings == nullptr || !policy.to_train || !job.config.trainer.offline.empty()) continue;
    const auto size = static_cast<std::int64_t>(fits * static_cast<double>(settings->replay.buffer_size));
    text +=
        concat(text.empty() ? "lower " : " and ", "policy.", policy.name,
               ".buffer_size = ", settings->replay.buffer_size, size > 0 ? concat(" to about ", size) : "");
  }
  return text.empty() ? text : "the replay memory is what does not fit: " + text;
}

}  // namespace

double rollout_bytes(const Config& config, const Environment& environment, std::int64_t steps,
                     double replicas) {
  RolloutShape one = RolloutShape::of(environment.spec(), config, 1);
  one.steps = steps;
  return replicas * (trajectory_bytes(one) + state_bytes(environment));
}

double activation_bytes(const Config& config, const Environment& environment, std::int64_t steps,
                        double replicas, Reuse reuse, Device device) {
  const Precision precision = config.trainer.precision;
  const auto layouts = policy_layouts(RolloutShape::of(environment.spec(), config, 1));
  double bytes = 0.0;
  for (std::size_t p = 0; p < layouts.size(); ++p) {
    const PolicySettings& policy = config.policies[p];
    if (!policy.to_train) continue;
    if (!device.is_cuda() && policy.num_opponents() > 0) continue;  // a Bank has them by player
    const bool activations = policy.algorithm->traits().keeps_activations == reuse;
    if (!activations && reuse == kReuseYes) continue;
    if (reuse == kReuseAuto && policy.model.network) continue;  // those of a module cannot be kept
    const double rows = replicas * static_cast<double>(steps) * layouts[p].num_agents;
    const auto networks =
        make_networks(layouts[p], policy.model, policy.algorithm->traits().output, {}, precision);
    if (!activations) {  // only what follows from observations
      if (policy.algorithm->traits().learns_from != LearnsFrom::kPlay) continue;
      const std::unique_ptr<Network> actor = networks[0]();
      bytes += rows * static_cast<double>(at::elementSize(actor->feature_type())) * actor->feature_size();
      continue;
    }
    for (const MakeNetwork& make : networks)
      bytes += rows * (precision == kBf16 ? 2.0 : 4.0) * static_cast<double>(make()->activation_size());
  }
  return bytes;
}

double opponent_bytes(const Config& config, const Environment& environment, std::int64_t replicas,
                      Device device) {
  const Precision precision = config.trainer.precision;
  const auto layouts = policy_layouts(RolloutShape::of(environment.spec(), config, 1));
  double bytes = 0.0;
  for (std::size_t p = 0; p < layouts.size(); ++p) {
    const PolicySettings& policy = config.policies[p];
    if (policy.num_opponents() == 0) continue;
    const OpponentList list = found_opponents(config, environment, policy);
    const int slots = list.pool ? Pool::num_slots(*list.pool) : 0;
    const int players = static_cast<int>(list.others.size()) + slots;
    std::vector<const PolicySettings*> leads;  // of banks
    if (!device.is_cuda()) {
      leads.push_back(&policy);
      bytes += Bank::bytes(layouts[p], policy, replicas, true, 1 + players, device, precision);
    }
    const auto add = [&](const PolicySettings& other, int copies) {
      PolicyLayout layout = layouts[p];
      layout.state_size = other.model.state_size();
      layout.carries_noise = other.algorithm->traits().carries_noise;
      layout.reads = other.model.all_reads();
      bytes += copies * network_bytes(layout, other, precision, precision, false);
      if (std::ranges::any_of(leads, [&](const auto* lead) { return Bank::are_alike(*lead, other); })) return;
      const double of_bank = Bank::bytes(layout, other, replicas, false, players, device, precision);
      bytes += of_bank > 0.0 ? of_bank : copies * static_cast<double>(replicas) * acting_bytes(layout, true);
      if (of_bank > 0.0) leads.push_back(&other);
    };
    for (const FoundPlayer& found : list.others) {
      if (found.frozen)
        add(found.frozen->settings, 1);
      else if (found.spec.kind != PlayerSpec::kPool)
        bytes += static_cast<double>(replicas) * acting_bytes(layouts[p], false);
    }
    if (slots == 0) continue;
    add(policy, slots);
    if (!device.is_cuda())  // other copies wait in the same memory
      bytes +=
          std::max(list.pool->size - slots, 0) * network_bytes(layouts[p], policy, precision, kFp32, false);
  }
  return bytes;
}

double algorithm_bytes(const Config& config, const Environment& environment, int world_size) {
  const TrainerSettings& trainer = config.trainer;
  const auto layouts = policy_layouts(RolloutShape::of(environment.spec(), config, 1));
  double bytes = 0.0;
  for (std::size_t p = 0; p < layouts.size(); ++p) {
    const PolicySettings& policy = config.policies[p];
    WorkerShape worker{.layout = layouts[p],
                       .model = policy.model,
                       .precision = trainer.precision,
                       .replicas = static_cast<double>(trainer.num_envs) / world_size,
                       .rollout_steps = trainer.rollout_steps(),
                       .num_envs = trainer.num_envs};
    if (!trainer.offline.empty() && policy.to_train)
      worker.recorded =
          Recording(std::filesystem::path(trainer.offline) / policy.name).share(trainer.num_envs);
    bytes += policy.algorithm->bytes(worker);
  }
  return bytes;
}

MemoryNeeded memory_needed(const Config& config, const Environment& environment, int world_size,
                           Device device) {
  const TrainerSettings& trainer = config.trainer;
  const auto steps = static_cast<double>(trainer.rollout_steps());
  const double replicas = static_cast<double>(trainer.num_envs) / world_size;
  MemoryNeeded needed;
  needed.replicas = replicas * state_bytes(environment);
  const auto layouts = policy_layouts(RolloutShape::of(environment.spec(), config, 1));
  for (std::size_t p = 0; p < layouts.size(); ++p) {
    const ModelSettings& model = config.policies[p].model;
    const int minibatches = config.policies[p].algorithm->traits().minibatches;
    const TrainingShape shape =
        training_shape(config.policies[p], environment.spec(), trainer.num_envs, trainer.rollout_steps());
    const std::int64_t share = shape.share(config.policies[p].algorithm->traits().row_limit);
    const std::int64_t together = shape.steps_together;
    const bool windows = config.policies[p].algorithm->traits().learns_from != LearnsFrom::kPlay;
    const double units = std::ceil(static_cast<double>(share) * replicas / minibatches);
    const double part =
        Minibatches::part_of_rows(environment.spec(), layouts[p], config.policies[p].algorithm->traits());
    for (const BufferField& field : buffer_fields()) {
      const double bytes = field.bytes(layouts[p]);
      if (field.tensor == &PolicyBuffers::observation && !(is_shared(field, layouts[p]) && p > 0))
        needed.observations += bytes * replicas * (steps + 1.0);
      if (field.in_batch(layouts[p]) && !windows &&
          Minibatches::gathers(minibatches, model.state_size() > 0, share, shape.share(0)))
        needed.minibatches +=
            bytes * units * static_cast<double>(together) * Minibatches::copied_part(field, together) * part;
    }
    needed.networks +=
        network_bytes(layouts[p], config.policies[p], trainer.precision, trainer.precision, true);
    if (ends_by_own_return(trainer))  // the weights that played (src/trainer/played.h)
      needed.networks += network_bytes(layouts[p], config.policies[p], trainer.precision, kFp32, false);
    if (config.policies[p].average > 0.0)
      needed.networks += network_bytes(layouts[p], config.policies[p], trainer.precision, kFp32, false);
  }
  needed.activations =
      activation_bytes(config, environment, trainer.rollout_steps(), replicas, kReuseYes, device);
  needed.opponents =
      opponent_bytes(config, environment, static_cast<std::int64_t>(std::ceil(replicas)), device);
  needed.algorithms = algorithm_bytes(config, environment, world_size);
  needed.other_buffers = rollout_bytes(config, environment, trainer.rollout_steps(), replicas) -
                         needed.replicas - needed.observations;
  return needed;
}

double evaluation_bytes(const Config& config, const Environment& environment) {
  if (config.eval.every == 0) return 0.0;
  const Precision precision = config.trainer.precision;
  const Evaluator evaluator(config, environment, {}, {});
  const auto layouts = policy_layouts(RolloutShape::of(environment.spec(), config, 1));
  Match match;
  match.players.resize(evaluator.sides().size());
  match.episodes = config.eval.episodes;
  if (!config.eval.opponents().empty())  // each side plays alone against others
    for (std::size_t s = 1; s < match.players.size(); ++s) match.players[s].spec.kind = PlayerSpec::kRandom;
  double bytes = evaluator.bytes(match);
  for (std::size_t s = 0; s < match.players.size(); ++s) {
    const auto policy = static_cast<std::size_t>(evaluator.sides()[s].policy);
    if (match.players[s].is_policy())
      bytes += network_bytes(layouts[policy], config.policies[policy], precision, precision, false);
  }
  return bytes;
}

std::string memory_line(const Job& job) {
  const MemoryNeeded needed = needed_by(job);
  const std::string line =
      concat("memory", job.world_size > 1 ? " of each worker" : "", ": at least ", amount(needed.total()),
             of_limit(room(job, job.device)), ": ", parts_text(needed));
  if (!evaluates_elsewhere(job)) return line;
  return concat(line, "; evaluations on the ", job.evaluation->is_cuda() ? "GPU" : "CPU", ": at least ",
                amount(evaluation_bytes(job.config, job.environment)), of_limit(room(job, *job.evaluation)));
}

std::string largest_that_fits(const Job& job) {
  const std::optional<Allowance> limit = room(job, job.device);
  if (!limit) return {};
  const TrainerSettings& trainer = job.config.trainer;
  const MemoryNeeded needed = needed_by(job);
  if (std::string memories = smaller_memories(job, needed, static_cast<double>(limit->bytes));
      !memories.empty())
    return memories;
  const double fixed = needed.networks + needed.algorithms + needed.evaluation;
  const double per_replica =
      (needed.total() - fixed) * job.world_size / static_cast<double>(trainer.num_envs);  // of all workers
  const auto share =
      static_cast<std::int64_t>(std::floor((static_cast<double>(limit->bytes) - fixed) / per_replica));
  const std::string steps = report::counted(trainer.rollout_steps(), "step");
  if (share < 1) return concat("with rollouts of ", steps, ", not even one replica per worker fits");
  const std::int64_t replicas = share * job.world_size;
  return concat("with rollouts of ", steps, ", at most ", report::counted(replicas, "replica"),
                " would fit (trainer.num_envs = ", replicas,
                ", trainer.train_batch_size = ", replicas * trainer.rollout_steps(), ")");
}

void check_memory(const Job& job) {
  const std::optional<Allowance> limit = room(job, {});
  if (!limit) return;
  if (job.device.is_cuda()) return check_evaluation_memory(job, *limit);
  const MemoryNeeded needed = needed_by(job);
  const auto bytes = static_cast<double>(limit->bytes);
  if (needed.total() <= bytes) return;
  const TrainerSettings& trainer = job.config.trainer;
  throw UsageError(concat(
      "not enough memory: ", job.world_size > 1 ? "each worker" : "training", " needs at least ",
      amount(needed.total()), ", and ", report::format_bytes(limit->bytes), " can be had (", limit->source,
      "): ", trainer.num_envs, " replicas x ", report::counted(trainer.rollout_steps(), "step"), " x ",
      report::counted(job.environment.spec().num_agents(), "agent"), " take ", parts_text(needed), "; ",
      largest_that_fits(job), smaller_memories(job, needed, bytes).empty() ? kLessMemory : ""));
}

void check_recording_memory(const Config& config, const Environment& environment, int replicas,
                            std::int64_t rollout_steps, std::int64_t steps, std::int64_t part_bytes) {
  const std::optional<Allowance> limit = host_room();
  if (!limit) return;
  const double rollouts = rollout_bytes(config, environment, rollout_steps, replicas);
  double parts = 0.0;
  for (const PolicyLayout& layout : policy_layouts(RolloutShape::of(environment.spec(), config, 1))) {
    double step = 0.0;  // [bytes] of all replicas
    for (const BufferField& field : recorded_fields()) step += field.bytes(layout) * replicas;
    parts += step * std::clamp(std::floor(static_cast<double>(part_bytes) / std::max(step, 1.0)), 1.0,
                               static_cast<double>(steps));
  }
  if (rollouts + parts <= static_cast<double>(limit->bytes)) return;
  throw UsageError(concat("not enough memory: recording needs at least ", amount(rollouts + parts), ", and ",
                          report::format_bytes(limit->bytes), " can be had (", limit->source,
                          "): rollouts of ", report::counted(replicas, "replica"), " take ", amount(rollouts),
                          ", parts of files ", amount(parts), "; lower ",
                          parts > rollouts ? "--part_mib" : "--num_envs"));
}

}  // namespace wd::scaling
