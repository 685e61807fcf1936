// trainer.cpp: one iteration: T steps of all replicas, then the update of every policy from the same memory.
#include "wd/trainer.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <xxhash.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <thread>

#include "kernels/reduce.h"
#include "src/algorithm/guard.h"
#include "src/base/files.h"
#include "src/device/device.h"
#include "src/device/graph.h"
#include "src/trainer/action_spread.h"
#include "src/trainer/episode_log.h"
#include "src/trainer/named.h"
#include "src/trainer/reduce_metrics.h"
#include "src/trainer/timeline.h"
#include "wd/algorithm.h"
#include "wd/error.h"
#include "wd/heartbeat.h"
#include "wd/log.h"
#include "wd/profile.h"
#include "wd/weights.h"

namespace wd {

namespace {

using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;

std::string read_starts(const std::string& path) {
  const std::optional<std::string> text = read_whole(path, kMostInput);
  if (!text) throw UsageError(concat("env.starts = ", path, ": cannot be read: ", std::strerror(errno)));
  return *text;
}

constexpr const char* kRollouts = "rollouts";

// `flag`: [1] int64 on the host, to be overwritten.
bool any(const ProcessGroup& group, const at::Tensor& flag, bool here) {
  *flag.mutable_data_ptr<std::int64_t>() = here ? 1 : 0;
  group.all_reduce(flag, ReduceOp::kMax);
  return flag.item<std::int64_t>() != 0;
}

// Rank 0's tensor, on the host of every rank. Its type is one of those that checkpoints hold.
at::Tensor distribute(const ProcessGroup& group, const at::Tensor& source) {
  if (group.size() == 1) return source;
  constexpr std::int64_t kMaxDimensions = 8;
  const at::Tensor form = at::zeros({2 + kMaxDimensions}, at::kLong);  // type, dimensions, sizes
  auto* const numbers = form.mutable_data_ptr<std::int64_t>();
  if (group.leads()) {
    WD_CHECK(source.dim() <= kMaxDimensions, "a tensor of ", source.dim(), " dimensions");
    numbers[0] = static_cast<std::int64_t>(source.scalar_type());
    numbers[1] = source.dim();
    std::copy(source.sizes().begin(), source.sizes().end(), numbers + 2);
  }
  group.broadcast(form);
  const at::IntArrayRef shape(numbers + 2, static_cast<std::size_t>(numbers[1]));
  const at::Tensor tensor =
      group.leads() ? source.contiguous() : at::empty(shape, static_cast<at::ScalarType>(numbers[0]));
  if (tensor.numel() > 0) group.broadcast(tensor);
  return tensor;
}

// This rank's rows of rank 0's tensor, on the host.
at::Tensor share_out(const ProcessGroup& group, const NamedTensor& own, const at::Tensor& source) {
  std::vector<std::int64_t> shape = own.tensor.sizes().vec();
  at::Tensor rows = at::empty(shape, own.tensor.options().device(at::kCPU));
  shape[0] *= group.size();
  if (group.leads()) {
    WD_CHECK(source.sizes() == at::IntArrayRef(shape) && source.scalar_type() == rows.scalar_type(),
             "the checkpoint's tensor '", own.name, "' is ", source.scalar_type(), source.sizes(), " where ",
             rows.scalar_type(), at::IntArrayRef(shape), " is expected");
  }
  group.scatter_rows(source, rows);
  return rows;
}

// The least and the greatest reward of this rank's transitions; NaN where it has none. Piece by piece: it
// needs little memory.
std::pair<double, double> reward_limits(const PolicyBuffers& buffers) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 20;
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const at::Tensor reward = buffers.reward.flatten(), outside = buffers.mask.flatten() == 0;
  at::Tensor least = at::full({}, kNone, reward.options()), greatest = at::full({}, -kNone, reward.options());
  for (std::int64_t begin = 0; begin < reward.numel(); begin += kPiece) {
    const at::Tensor piece = reward.slice(0, begin, begin + kPiece),
                     others = outside.slice(0, begin, begin + kPiece);
    least = at::minimum(least, piece.masked_fill(others, kNone).min());
    greatest = at::maximum(greatest, piece.masked_fill(others, -kNone).max());
  }
  const double low = least.item<double>(), high = greatest.item<double>();
  return low <= high ? std::pair(low, high) : std::pair(std::nan(""), std::nan(""));
}

std::vector<std::string> policy_names(const Config& config) {
  std::vector<std::string> names;
  for (const PolicySettings& policy : config.policies) names.push_back(policy.name);
  return names;
}

}  // namespace

void check_shares(const Config& config, int world_size) {
  const std::int64_t envs = config.trainer.num_envs, below = envs / world_size * world_size;
  if (envs % world_size == 0) return;
  throw UsageError(concat("trainer.num_envs = ", envs, ": must be a multiple of the ", world_size,
                          " workers, as ", below > 0 ? concat(below, " or ") : "", below + world_size));
}

ReplicasOptions replicas_options(const Config& config, Device device, int rank, int world_size) {
  check_shares(config, world_size);
  ReplicasOptions options;
  options.num_envs = static_cast<int>(config.trainer.num_envs / world_size);
  options.first_replica = static_cast<std::uint32_t>(rank * options.num_envs);
  options.seed = static_cast<std::uint64_t>(config.trainer.seed);
  options.reset = static_cast<ResetMode>(config.env.reset);
  options.pool_size = static_cast<std::uint32_t>(config.env.reset_pool_size);
  if (options.reset == ResetMode::kGiven) options.starts = read_starts(config.env.starts);
  options.device = device;
  return options;
}

// Copies of tensors, to be put back: allocated once.
class Backup {
 public:
  void keep(const std::vector<at::Tensor>& tensors) {
    if (copies_.empty())
      for (const at::Tensor& tensor : tensors) copies_.push_back(at::empty_like(tensor));
    for (std::size_t k = 0; k < tensors.size(); ++k) copies_[k].copy_(tensors[k]);
  }
  void put_back(const std::vector<at::Tensor>& tensors) const {
    for (std::size_t k = 0; k < tensors.size(); ++k) tensors[k].copy_(copies_[k]);
  }

 private:
  std::vector<at::Tensor> copies_;
};

struct Trainer::Impl {
  const Config config;
  Device device;
  ProcessGroup group;
  ReplicasOptions share;
  Replicas replicas;
  Trajectory trajectory;
  std::vector<Policy> policies;
  std::vector<Learner> learners;
  EpisodeLog episodes;
  Guard guard;
  Timeline timeline;
  TrainingClock clock;  // counts, on the device
  Graph rollout_graph, update_graph;
  Branches branches;  // one a policy
  StepCounts counts;
  StepCounts counts_at_metrics;
  Clock::time_point start = Clock::now(), metrics_taken = start;
  bool started = false, straggler_told = false;
  std::int64_t rollouts = 0;                    // of this object
  Backup backup;                                // of what an iteration changes before it counts
  at::Tensor flag = at::zeros({1}, at::kLong);  // on the host, for what ranks tell one another

  Impl(const Config& c, const EnvironmentRow& row, const Environment& environment, Device d, ProcessGroup g)
      : config(c),
        device(d),
        group(std::move(g)),
        share(share_of(c, environment, d, group)),
        replicas(row, environment, share),
        trajectory(replicas.spec(), policy_names(c), c.policy_of_role,
                   static_cast<int>(c.trainer.rollout_steps()), share.num_envs, d, c.trainer.storage()),
        episodes(trajectory, d, group),
        guard(trajectory, d, share.first_replica),
        timeline(d),
        clock(d),
        rollout_graph(d, c.trainer.cuda_graphs),
        update_graph(d, c.trainer.cuda_graphs),
        branches(d) {
    if (share.staggered) leave_out_cut_episodes();
    policies.reserve(c.policies.size());
    for (std::size_t p = 0; p < c.policies.size(); ++p) {
      const int index = static_cast<int>(p);
      const auto seed = static_cast<std::uint64_t>(c.trainer.seed);
      policies.emplace_back(trajectory.policies()[p], c.policies[p].model, index, seed, c.trainer.chunk_rows,
                            d, static_cast<Precision>(c.trainer.precision));
      if (!c.policies[p].model.model_ckpt_filepath.empty())
        load_weights(policies[p], c.policies[p].model.model_ckpt_filepath);
      if (c.policies[p].algorithm->keeps_activations() && c.policies[p].to_train)
        policies[p].keep_activations(trajectory.policies()[p]);
      learners.emplace_back(policies[p], trajectory, index, c.policies[p], seed, group);
      learners.back().set_skip_flag(guard.failed());
    }
    synchronize();
  }

  static ReplicasOptions share_of(const Config& config, const Environment& environment, Device device,
                                  const ProcessGroup& group);
  void leave_out_cut_episodes();
  void poison(const std::string& tensor);
  void synchronize();
  void parameters_changed();  // from outside of an update
  std::vector<at::Tensor> learned() const;
  std::vector<at::Tensor> changing() const;
  bool preempts() const { return config.trainer.straggler_preempt > 0.0 && group.size() > 1; }
  bool enough_ranks_done() const;
  std::int64_t env_steps_of_rollout() const;
  std::map<std::string, std::vector<NamedTensor>> files() const;
  bool replays(const IterateOptions& options) const;
  bool rollout(const IterateOptions& options);
  bool step_through(const IterateOptions& options, bool with_marks);
  bool update(const IterateOptions& options);
  bool learn(const std::function<bool()>& give_up);
  bool update_policies(const std::function<bool()>& give_up);
  void check() const;
  void add_policy_metrics(MetricsRow& row, std::size_t p);
  double reward_mean(const PolicyBuffers& buffers) const;
  void report_stragglers(double rollout_s, MetricsRow& row);
};

ReplicasOptions Trainer::Impl::share_of(const Config& config, const Environment& environment, Device device,
                                        const ProcessGroup& group) {
  ReplicasOptions share = replicas_options(config, device, group.rank(), group.size());
  share.staggered = config.staggers(environment.spec().time_limit);
  return share;
}

void Trainer::Impl::leave_out_cut_episodes() {
  std::vector<bool> cut;
  for (int e = 0; e < share.num_envs; ++e) cut.push_back(replicas.is_first_cut(e));
  episodes.leave_out_first(cut);
}

// For tests: NaN where it hurts, or a number that is a little wrong.
void Trainer::Impl::poison(const std::string& tensor) {
  const double nan = std::nan("");
  PolicyBuffers& buffers = trajectory.policies()[0];
  if (tensor == "observation") buffers.observation[0][0][0][0].fill_(nan);
  if (tensor == "reward") buffers.reward[0][0][0].fill_(nan);
  if (tensor == "drift") policies[0].parameters()[0].mul_(1.0 + 1e-6).add_(1e-7);
  if (tensor == "weight") policies[0].parameters()[0].fill_(nan);
  learners[0].poison_next(tensor);
  parameters_changed();
}

// What is the same on all ranks: parameters, moments, steps of the optimizer.
std::vector<at::Tensor> Trainer::Impl::learned() const {
  std::vector<at::Tensor> tensors;
  for (const Policy& policy : policies) tensors.push_back(policy.parameters());
  for (const Learner& learner : learners)
    for (const NamedTensor& named : learner.optimizer()) tensors.push_back(named.tensor);
  return tensors;
}

// What an iteration changes as it goes.
std::vector<at::Tensor> Trainer::Impl::changing() const {
  std::vector<at::Tensor> tensors = learned();
  tensors.push_back(replicas.blocks());
  return tensors;
}

void Trainer::Impl::synchronize() {
  for (const at::Tensor& tensor : learned()) group.broadcast(tensor);
  parameters_changed();
}

void Trainer::Impl::parameters_changed() {
  for (Policy& policy : policies) policy.refresh_shadow();
}

// All that is saved, by file: the tensors themselves.
std::map<std::string, std::vector<NamedTensor>> Trainer::Impl::files() const {
  std::map<std::string, std::vector<NamedTensor>> files;
  for (std::size_t p = 0; p < policies.size(); ++p) {
    files["weights/" + policies[p].name()] = policies[p].named_parameters();
    files["optimizer/" + policies[p].name()] = learners[p].optimizer();
  }
  std::vector<NamedTensor>& replica_file = files["replicas"];
  replica_file.push_back({"blocks", replicas.blocks(), true});
  for (NamedTensor& row : trajectory.last_rows()) replica_file.push_back(std::move(row));
  files["episodes"] = episodes.state();
  return files;
}

// Whether the host has nothing to do or to decide within the iteration.
bool Trainer::Impl::replays(const IterateOptions& options) const {
  return device.is_cuda() && config.trainer.cuda_graphs && !preempts() && !options.give_up &&
         options.step_delay.count() == 0 && options.poison.empty();
}

bool Trainer::Impl::rollout(const IterateOptions& options) {
  heartbeat::enter(heartbeat::Phase::kRollout);
  timeline.mark(Phase::kOther);
  if (!replays(options)) return step_through(options, true);
  rollout_graph.run([&] { step_through(options, false); });
  timeline.mark(Phase::kRollout);
  return true;
}

// All steps of a rollout; marks in the timeline cut it into its phases.
bool Trainer::Impl::step_through(const IterateOptions& options, bool with_marks) {
  const auto mark = [&](Phase phase) {
    if (with_marks) timeline.mark(phase);
  };
  if (started) {
    trajectory.carry_over();
  } else {
    replicas.step(trajectory.first_rows());
    started = true;
  }
  const int steps = trajectory.steps();
  Policy::ActOptions act;
  act.seed = static_cast<std::uint64_t>(config.trainer.seed);
  act.first_replica = share.first_replica;
  act.time = clock.time();
  act.rollout_steps = steps;
  int t = 0;
  for (; t < steps; ++t) {
    if (options.give_up && options.give_up()) return false;
    if (options.step_delay.count() > 0) std::this_thread::sleep_for(options.step_delay);
    if (preempts() && 4 * t >= steps && enough_ranks_done()) break;
    heartbeat::beat();
    act.step = static_cast<std::uint64_t>(t);
    {
      const profile::PhaseScope phase(Phase::kInference);
      branches.each(policies.size(),
                    [&](std::size_t p) { policies[p].act(trajectory.policies()[p], t, act); });
    }
    mark(Phase::kInference);
    {
      const profile::PhaseScope phase(Phase::kEnvironment);
      replicas.step(trajectory.rows(t));
    }
    mark(Phase::kEnvironment);
  }
  trajectory.end_at(t);
  const profile::PhaseScope phase(Phase::kInference);
  branches.each(policies.size(), [&](std::size_t p) { policies[p].evaluate(trajectory.policies()[p], t); });
  mark(Phase::kInference);
  if (preempts()) group.add(kRollouts, 1);
  return true;
}

// Each rank counts its rollouts up by one, whether they were complete or not.
bool Trainer::Impl::enough_ranks_done() const {
  wd::synchronize(device);
  const auto wanted = static_cast<std::int64_t>(std::ceil(config.trainer.straggler_preempt * group.size()));
  return group.add(kRollouts, 0) >= rollouts * group.size() + wanted;
}

// Over all ranks.
std::int64_t Trainer::Impl::env_steps_of_rollout() const {
  const std::int64_t own = std::int64_t{trajectory.length()} * share.num_envs;
  if (!preempts()) return own * group.size();
  auto* const sum = flag.mutable_data_ptr<std::int64_t>();
  *sum = own;
  group.all_reduce(flag);
  return *sum;
}

bool Trainer::Impl::update(const IterateOptions& options) {
  heartbeat::enter(heartbeat::Phase::kUpdate);
  const profile::PhaseScope phase(Phase::kUpdate);
  if (!options.poison.empty()) poison(options.poison);
  bool complete = true;
  if (replays(options)) {
    update_graph.run([&] { learn({}); });
  } else {
    complete = learn(options.give_up);
  }
  timeline.mark(Phase::kUpdate);
  return complete;
}

// The update of every policy. What it finds not to be finite it throws on the CPU; on a GPU it stands there until check().
bool Trainer::Impl::learn(const std::function<bool()>& give_up) {
  guard.watch_rollout(policies, clock);
  prepare(learners);
  if (!update_policies(give_up)) return false;
  if (!device.is_cuda())
    for (const Policy& policy : policies) guard.check_weights(policy);
  episodes.follow(clock);
  return true;
}

// Policies that wait for other ranks fill one another's waiting; where nobody waits each is a branch.
bool Trainer::Impl::update_policies(const std::function<bool()>& give_up) {
  if (group.size() > 1) return wd::update(learners, clock, give_up);
  bool complete = true;
  branches.each(learners.size(), [&](std::size_t p) {
    complete = complete && wd::update(std::span(learners).subspan(p, 1), clock, give_up);
  });
  return complete;
}

void Trainer::Impl::check() const {
  guard.check(policies);
  for (const Learner& learner : learners) learner.check();
}

Trainer::Trainer(const Config& config, const EnvironmentRow& row, const Environment& environment,
                 Device device, ProcessGroup group)
    : impl_(std::make_unique<Impl>(config, row, environment, device, std::move(group))) {}
Trainer::~Trainer() = default;

bool Trainer::iterate(const IterateOptions& options) {
  const at::AutoDispatchBelowADInplaceOrView no_autograd;  // nothing here is differentiated by torch
  Impl& self = *impl_;
  const auto& give_up = options.give_up;
  const bool was_started = self.started;
  if (give_up) self.backup.keep(self.changing());
  bool complete = self.rollout(options);
  if (give_up) complete = !any(self.group, self.flag, !complete);
  if (!complete || !self.update(options)) {
    self.backup.put_back(self.changing());
    self.parameters_changed();
    self.trajectory.carry_back();
    self.started = was_started;
    return false;
  }
  self.episodes.read_if_due();
  const std::int64_t env_steps = self.env_steps_of_rollout();
  ++self.rollouts;
  ++self.counts.iteration;
  self.counts.env_steps += env_steps;
  self.clock.advance(env_steps);
  self.counts.agent_steps = self.counts.env_steps * self.replicas.spec().num_agents();
  self.timeline.mark(Phase::kOther);
  return true;
}

void Trainer::rollout() { impl_->rollout({}); }

void Trainer::synchronize() { impl_->synchronize(); }

void Trainer::check() const { impl_->check(); }

Snapshot Trainer::snapshot() const {
  impl_->check();
  impl_->episodes.read();
  Snapshot snapshot{impl_->counts, wall_s(), impl_->files()};
  for (auto& [file, tensors] : snapshot.files) {
    tensors = host_copies(tensors);
    for (NamedTensor& named : tensors)
      if (named.per_replica) named.tensor = impl_->group.gather_rows(named.tensor);
  }
  return snapshot;
}

// Rows of replicas are those of all ranks; what else is kept of episodes is as long as there were episodes.
SnapshotForms Trainer::snapshot_forms() const {
  SnapshotForms forms;
  for (const auto& [file, tensors] : impl_->files()) {
    for (const NamedTensor& named : tensors) {
      TensorForm& form = forms[file].emplace_back(form_of(named));
      if (named.per_replica) {
        form.shape[0] *= impl_->group.size();
      } else if (file == "episodes" && form.shape.size() == 1) {
        form.shape = {kAnyLength};
      } else if (file == "episodes") {
        form.or_list = true;  // as checkpoints had it before each replica had a row
      }
    }
  }
  return forms;
}

// Rank 0 has the snapshot; what belongs to replicas goes to the ranks that step them, the rest to all.
void Trainer::restore(const Snapshot& snapshot) {
  Impl& self = *impl_;
  const ProcessGroup& group = self.group;
  for (const auto& [file, tensors] : self.files()) {
    const std::vector<NamedTensor>* saved = nullptr;
    if (group.leads()) {
      const auto found = snapshot.files.find(file);
      WD_CHECK(found != snapshot.files.end(), "the checkpoint has no file ", file, ".safetensors");
      saved = &found->second;
    }
    std::vector<NamedTensor> own;
    for (const NamedTensor& named : tensors) {
      const at::Tensor& source = saved == nullptr ? at::Tensor() : find_tensor(*saved, named.name);
      own.push_back(
          {named.name, named.per_replica ? share_out(group, named, source) : distribute(group, source)});
    }
    if (file == "episodes") {
      self.episodes.restore(own);
    } else {
      for (const NamedTensor& named : tensors) restore_tensor(own, named.name, named.tensor);
    }
  }
  self.parameters_changed();
  const StepCounts& counts = snapshot.counts;
  const at::Tensor numbers =
      at::tensor({static_cast<double>(counts.iteration), static_cast<double>(counts.env_steps),
                  static_cast<double>(counts.agent_steps), snapshot.wall_s},
                 at::kDouble);
  group.broadcast(numbers);  // counts are below 2^53
  const auto number = [&](int k) { return numbers[k].item<double>(); };
  self.counts = {static_cast<std::int64_t>(number(0)), static_cast<std::int64_t>(number(1)),
                 static_cast<std::int64_t>(number(2))};
  self.clock.set(self.counts.iteration, self.counts.env_steps);
  self.counts_at_metrics = self.counts;
  self.started = self.counts.iteration > 0;
  self.metrics_taken = Clock::now();
  self.start = self.metrics_taken - std::chrono::duration_cast<Clock::duration>(Seconds(number(3)));
}

void Trainer::check_ranks_agree() const {
  const Impl& self = *impl_;
  if (self.group.size() == 1) return;
  XXH64_hash_t hash = XXH3_64bits(&self.counts, sizeof(self.counts));
  for (const at::Tensor& tensor : self.learned()) {
    const at::Tensor host = tensor.cpu();
    hash = XXH3_64bits_withSeed(host.const_data_ptr(), host.nbytes(), hash);
  }
  const at::Tensor all =
      self.group.all_gather_rows(at::full({1}, static_cast<std::int64_t>(hash), at::kLong));
  std::string others;
  for (int r = 1; r < self.group.size(); ++r)
    if (all[r].item<std::int64_t>() != all[0].item<std::int64_t>())
      others += concat(others.empty() ? "" : ", ", r);
  WD_CHECK(others.empty(), "after iteration ", self.counts.iteration,
           " parameters, moments or counters of rank ", others,
           " are not those of rank 0: the ranks have drifted apart, and nothing more is learned; go on from "
           "a checkpoint "
           "before, and look for a machine with faulty memory or another build");
}

std::array<double, kNumPhases> Trainer::phase_seconds() {
  impl_->timeline.mark(Phase::kOther);
  return impl_->timeline.all();
}
const ProcessGroup& Trainer::group() const { return impl_->group; }
double Trainer::wall_s() const { return Seconds(Clock::now() - impl_->start).count(); }
const StepCounts& Trainer::counts() const { return impl_->counts; }
Trajectory& Trainer::trajectory() { return impl_->trajectory; }
Replicas& Trainer::replicas() { return impl_->replicas; }
std::vector<Policy>& Trainer::policies() { return impl_->policies; }
double Trainer::mean_return(std::size_t policy) const { return impl_->episodes.window(policy).mean(); }
bool Trainer::return_known() const { return impl_->episodes.window(0).full(); }

bool Trainer::return_reached() const {
  const auto& wanted = impl_->config.trainer.stop_return;
  return wanted && return_known() && mean_return(0) >= *wanted;
}

// Mean reward of the rollout's transitions on all ranks, in a fixed order.
double Trainer::Impl::reward_mean(const PolicyBuffers& buffers) const {
  const auto doubles = buffers.reward.options().dtype(at::kDouble);
  at::Tensor partial = at::empty({3 * num_chunks(buffers.reward.numel())}, doubles),
             moments = at::empty({3}, doubles);
  masked_moments(current_queue(device), buffers.reward.const_data_ptr<float>(),
                 buffers.mask.const_data_ptr<std::uint8_t>(), buffers.reward.numel(),
                 partial.mutable_data_ptr<double>(), moments.mutable_data_ptr<double>());
  group.all_reduce(moments);
  return (moments[1] / moments[0].clamp_min(1.0)).item<double>();
}

void Trainer::Impl::add_policy_metrics(MetricsRow& row, std::size_t p) {
  const PolicyBuffers& buffers = trajectory.policies()[p];
  const std::string prefix = buffers.name + "/";
  const EpisodeLog::Interval ended = episodes.take_interval(p);
  if (p == 0) row.add("episodes", static_cast<double>(ended.episodes));
  row.add(prefix + "mean_return", ended.mean_return);
  row.add(prefix + "max_return", ended.max_return);
  row.add(prefix + "recent_return", episodes.window(p).mean());
  row.add(prefix + "episode_length", ended.mean_length);
  row.add(prefix + "reward_mean", reward_mean(buffers));
  const auto [least, greatest] = reward_limits(buffers);
  row.add(prefix + "reward_min", least);
  row.add(prefix + "reward_max", greatest);
  for (const auto& [name, value] : learners[p].metrics()) row.add(prefix + name, value);
  const ActionSpread spread = action_spread(buffers);
  for (std::size_t axis = 0; axis < ActionSpread::kNames.size(); ++axis) {
    for (std::size_t k = 0; k < spread.by_axis[axis].size(); ++k)
      row.add(concat(prefix, ActionSpread::kNames[axis], '/', buffers.action_space.name(k)),
              spread.by_axis[axis][k]);
  }
}

// How long rollouts took on the slowest rank and on an average one; a warning, once.
void Trainer::Impl::report_stragglers(double rollout_s, MetricsRow& row) {
  const at::Tensor all = group.all_gather_rows(at::full({1}, rollout_s, at::kDouble));
  const double mean = all.mean().item<double>(), longest = all.max().item<double>();
  row.add("time/rollout_mean_s", mean);
  row.add("time/rollout_max_s", longest);
  constexpr double kTolerated = 1.2, kNotable = 0.05;
  const double interval = Seconds(Clock::now() - metrics_taken).count();
  if (longest <= kTolerated * mean || longest - mean <= kNotable * interval || straggler_told) return;
  straggler_told = true;
  if (group.leads()) {
    logging::warn(concat(
        "rollouts of rank ", all.argmax().item<std::int64_t>(), " take ",
        std::round(100.0 * longest / mean) / 100.0,
        " times as long as those of an average rank: the others wait for it; see time/rollout_max_s and "
        "trainer.straggler_preempt"));
  }
}

MetricsRow Trainer::take_metrics() {
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  Impl& self = *impl_;
  self.check();
  self.episodes.read();
  MetricsRow row(self.counts);
  for (std::size_t p = 0; p < self.policies.size(); ++p) self.add_policy_metrics(row, p);
  const std::vector<double> statistics = self.episodes.take_statistics();
  for (std::size_t k = 0; k < statistics.size(); ++k)
    row.add(concat(kEnvironmentGroup, '/', self.replicas.spec().statistics[k].field), statistics[k]);
  self.timeline.mark(Phase::kOther);
  const auto seconds = self.timeline.totals();
  const auto spent = [&](Phase phase) { return seconds[static_cast<std::size_t>(phase)]; };
  const Clock::time_point now = Clock::now();
  const double interval = Seconds(now - self.metrics_taken).count();
  const double steps =
      static_cast<double>(self.counts.env_steps - self.counts_at_metrics.env_steps) / self.group.size();
  row.add("time/wall_s", Seconds(now - self.start).count());
  row.add("time/env_steps_per_s", steps / interval);
  row.add("time/agent_steps_per_s", steps * self.replicas.spec().num_agents() / interval);
  // Where the rollout was replayed in one piece, nobody knows how it splits.
  const bool split = spent(Phase::kRollout) == 0.0;
  row.add("time/environment_s", split ? spent(Phase::kEnvironment) : std::nan(""));
  row.add("time/inference_s", split ? spent(Phase::kInference) : std::nan(""));
  row.add("time/update_s", spent(Phase::kUpdate));
  row.add("time/other_s", spent(Phase::kOther));
  row.add("time/collective_s", self.group.take_seconds());
  self.report_stragglers(spent(Phase::kEnvironment) + spent(Phase::kInference) + spent(Phase::kRollout), row);
  self.metrics_taken = now;
  self.counts_at_metrics = self.counts;
  return reduce(row, self.group);
}

}  // namespace wd
