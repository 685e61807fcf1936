// trainer.cpp: one iteration: T steps of all replicas, then the update of every policy from the same memory.
#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <cmath>
#include <exception>
#include <span>
#include <thread>
#include <utility>

#include "src/base/join.h"
#include "src/base/log.h"
#include "src/config/compatible.h"
#include "src/device/device.h"
#include "src/game/opponents.h"
#include "src/nets/timed_algorithms.h"
#include "src/report/format.h"
#include "src/trainer/impl.h"
#include "src/trainer/trainable.h"
#include "wd/detail/profile.h"
#include "wd/error.h"
#include "wd/heartbeat.h"
#include "wd/model.h"
#include "wd/weights.h"

namespace wd {

ReplicasOptions replicas_options(const Config& config, Device device, int rank, int world_size) {
  check_shares(config, world_size);
  ReplicasOptions options;
  options.num_envs = static_cast<int>(config.trainer.num_envs / world_size);
  options.first_replica = static_cast<std::uint32_t>(rank * options.num_envs);
  options.seed = static_cast<std::uint64_t>(config.trainer.seed);
  options.reset = config.env.reset == ResetMode::kPlayed ? ResetMode::kRandom : config.env.reset;
  options.pool_size = static_cast<std::uint32_t>(config.env.reset_pool_size);
  if (options.reset == ResetMode::kGiven) options.starts = read_starts(config);
  options.device = device;
  return options;
}

namespace {

constexpr const char* kRollouts = "rollouts";

// A program may have chosen another GPU since, or none.
Device made_current(Device device) {
  if (device.is_cuda()) use_gpu(device.index);
  return device;
}

const Config& compatible(const Config& config, const Environment& environment, Device device) {
  require_compatible(config, environment.spec(), device.is_cuda());
  return config;
}

}  // namespace

Trainer::Impl::Impl(const Config& c, const Environment& environment, Device d, ProcessGroup g)
    : config(compatible(c, environment, d)),
      device(made_current(d)),
      group(std::move(g)),
      share(share_of(c, environment, d, group)),
      game(environment, share, RolloutShape::of(environment.spec(), c, share.num_envs, d)),
      replicas(game.replicas()),
      trajectory(game.trajectory()),
      episodes(trajectory, d, group),
      guard(trajectory, d, share.first_replica),
      evidence(replicas, trajectory, guard),
      timeline(d),
      clock(d),
      rollout_graph(d, c.trainer.cuda_graphs),
      update_graph(d, c.trainer.cuda_graphs),
      branches(d),
      pace({make_milestone(d), make_milestone(d)}) {
  if (share.staggered) {
    std::vector<bool> cut;
    for (int e = 0; e < share.num_envs; ++e) cut.push_back(replicas.is_first_cut(e));
    episodes.leave_out_first(cut);
  }
  timed_algorithms::set_timing(c.trainer.time_algorithms);
  const auto seed = static_cast<std::uint64_t>(c.trainer.seed);
  policies.reserve(c.policies.size());
  for (std::size_t p = 0; p < c.policies.size(); ++p) {
    policies.emplace_back(trajectory.policies()[p], c, static_cast<int>(p), d);
    if (!c.policies[p].model.model_ckpt_filepath.empty())
      load_weights(policies[p], c.policies[p].model.model_ckpt_filepath);
    if (keeps_activations(p)) {
      policies[p].keep_activations(trajectory.policies()[p]);
    } else if (c.policies[p].to_train && c.policies[p].algorithm->traits().learns_from == LearnsFrom::kPlay &&
               has_room(policies[p].feature_bytes(trajectory.policies()[p]))) {
      policies[p].keep_features(trajectory.policies()[p]);
    }
  }
  players = add_players(game, policies, config, environment);
  for (const OpponentsPlayer* const listed : opponents_of(game))
    if (listed->num_alone() > 0 && group.leads())
      logging::info(concat("opponents: ", listed->num_alone(),
                           " of them act in a pass of their own in all replicas, "
                           "since a GPU joins only perceptrons that read rows of observations and choose"));
  for (std::size_t p = 0; p < c.policies.size(); ++p) {
    learners.emplace_back(policies, trajectory, static_cast<int>(p), c.policies[p], seed, group,
                          open_recording(p));
    learners.back().algorithm().set_skip_flag(guard.failed());
    if (device.is_cuda()) guard.search_later(p, learners.back().algorithm().ended_early());
    averages.emplace_back(policies[p], c.policies[p].average);
  }
  if (ends_by_own_return(c.trainer)) played = PlayedWeights(weights());
  synchronize();
}

bool Trainer::Impl::keeps_activations(std::size_t policy) const {
  const PolicySettings& settings = config.policies[policy];
  const Reuse reuse = settings.algorithm->traits().keeps_activations;
  if (!settings.to_train || reuse == kReuseNo) return false;
  if (!device.is_cuda() && trajectory.policies()[policy].opponents > 0)
    return false;  // a Bank has them by player
  return reuse == kReuseYes || has_room(policies[policy].activation_bytes(trajectory.policies()[policy]));
}

// Whether so many bytes of a rollout, if any, can be kept by default: on a GPU that has room for them and for
// the working memory of updates.
bool Trainer::Impl::has_room(double bytes) const {
  const std::optional<GpuMemory> memory = device.is_cuda() ? gpu_memory() : std::nullopt;
  if (!memory || bytes <= 0.0) return false;
  const double used = static_cast<double>(memory->total - memory->free);
  return used + bytes <= AutoscaleSettings::kShareWithKept *
                             config.autoscale.gpu_budget(static_cast<double>(memory->total), group.size());
}

ReplicasOptions Trainer::Impl::share_of(const Config& config, const Environment& environment, Device device,
                                        const ProcessGroup& group) {
  ReplicasOptions share = replicas_options(config, device, group.rank(), group.size());
  share.staggered = config.staggers(environment.spec().time_limit);
  share.notes_dropped = true;
  return share;
}

// Returns null if the policy does not learn from recorded transitions.
const Recording* Trainer::Impl::open_recording(std::size_t policy) {
  if (!is_offline() || !config.policies[policy].to_train) return nullptr;
  const Recording& recording = *recordings.emplace_back(
      std::make_unique<Recording>(std::filesystem::path(config.trainer.offline) / policies[policy].name()));
  recording.check(config.name, replicas.spec(), trajectory.policies()[policy]);
  const std::int64_t envs = config.trainer.num_envs, each = recording.share(envs);
  if (group.leads())
    logging::info(concat("policy '", policies[policy].name(), "' learns from ", envs * each, " of ",
                         recording.entries(), " recorded steps (", recording.replicas(), " replicas, ",
                         recording.steps(), " steps each, ", report::counted(recording.parts(), "file"),
                         "): ", each, " for each of ", envs, " replicas"));
  return &recording;
}

// For tests: writes NaN to the named tensor, or makes a weight slightly wrong.
void Trainer::Impl::poison(const std::string& tensor) {
  const double nan = std::nan("");
  PolicyBuffers& buffers = trajectory.policies()[0];
  if (tensor == "observation") buffers.observation[0][0][0][0].fill_(nan);
  if (tensor == "last observation") buffers.observation[-1][0][0][0].fill_(nan);
  if (tensor == "reward") buffers.reward[0][0][0].fill_(nan);
  if (tensor == "drift") policies[0].parameters()[0].mul_(1.0 + 1e-6).add_(1e-7);
  if (tensor == "weight") policies[0].parameters()[0].fill_(nan);
  learners[0].algorithm().poison_next(tensor);
  parameters_changed();
}

// Whether it is so on any rank. All ranks.
bool Trainer::Impl::any(bool here) const {
  flag.fill_(here ? 1 : 0);
  group.all_reduce(flag, ReduceOp::kMax);
  return flag.item<std::int64_t>() != 0;
}

std::vector<int> Trainer::Impl::stages() const {
  std::vector<int> all;
  for (const Learner& learner : learners) all.push_back(learner.algorithm().stage(counts.iteration));
  return all;
}

// The first learner whose iterations cannot be undone, or null.
const Learner* Trainer::Impl::not_undoable() const {
  for (const Learner& learner : learners)
    if (!learner.algorithm().can_be_undone()) return &learner;
  return nullptr;
}

// What weights files hold: parameters and statistics of all policies.
std::vector<at::Tensor> Trainer::Impl::weights() const {
  std::vector<at::Tensor> tensors;
  for (const Policy& policy : policies) {
    tensors.push_back(policy.parameters());
    if (policy.critics() != nullptr) tensors.push_back(policy.critics()->parameters());
    for (const NamedTensor& named : policy.statistics()) tensors.push_back(named.tensor);
  }
  return tensors;
}

// The tensors that are the same on all ranks: parameters, their averages, statistics, moments, steps of the
// optimizer.
std::vector<at::Tensor> Trainer::Impl::learned() const {
  std::vector<at::Tensor> tensors = weights();
  for (const WeightsAverage& average : averages) tensors = joined(std::move(tensors), average.tensors());
  for (const Learner& learner : learners)
    for (const NamedTensor& named : learner.algorithm().state())
      if (!named.per_replica) tensors.push_back(named.tensor);
  return tensors;
}

// The tensors that an iteration changes while it runs.
std::vector<at::Tensor> Trainer::Impl::changing() const {
  std::vector<at::Tensor> tensors = learned();
  const auto add = [&](const std::vector<NamedTensor>& state) {
    for (const NamedTensor& named : state)
      if (named.per_replica) tensors.push_back(named.tensor);
  };
  for (const Learner& learner : learners) add(learner.algorithm().state());
  for (const std::unique_ptr<Player>& player : game.players()) add(player->state());
  tensors.push_back(replicas.blocks());
  return tensors;
}

void Trainer::Impl::synchronize() {
  for (const at::Tensor& tensor : learned()) group.broadcast(tensor);
  parameters_changed();
}

void Trainer::Impl::exchange_played() {
  played.exchange();
  parameters_changed();
}

void Trainer::Impl::parameters_changed() {
  for (Policy& policy : policies) policy.refresh_shadow();
  for (Learner& learner : learners) learner.algorithm().state_changed();
  for (const std::unique_ptr<Player>& player : game.players()) player->state_changed();
}

// Returns true if the host has nothing to do or to decide within the iteration.
bool Trainer::Impl::replays(const Iteration& options) const {
  return device.is_cuda() && config.trainer.cuda_graphs && !game.is_on_host() && !preempts() &&
         !options.should_stop && !options.faults.any();
}

bool Trainer::Impl::rollout(const Iteration& options) {
  heartbeat::enter(heartbeat::Activity::kRollout);
  timeline.mark(Phase::kOther);
  if (is_offline()) {  // nothing is played: the rollout stays empty
    for (Learner& learner : learners) learner.begin_rollout(clock);
    return true;
  }
  if (!replays(options)) return step_through(options, true);
  rollout_graph.run([&] { step_through(options, false); });
  timeline.mark(Phase::kRollout);
  return true;
}

// Makes all steps of a rollout; marks in the timeline divide it into its phases.
bool Trainer::Impl::step_through(const Iteration& options, bool with_marks) {
  const auto mark = [&](Phase phase) {
    if (with_marks) timeline.mark(phase);
  };
  game.begin();
  evidence.rollout_begins();
  for (std::size_t p = 0; p < learners.size(); ++p) {
    learners[p].begin_rollout(clock);
    players[p]->explore(learners[p].exploration());
  }
  const int steps = trajectory.steps();
  Player::Draw draw{.seed = static_cast<std::uint64_t>(config.trainer.seed),
                    .time = clock.time(),
                    .rollout_steps = steps,
                    .first_replica = share.first_replica};
  int t = 0;
  for (; t < steps; ++t) {
    if (options.should_stop && options.should_stop()) return false;
    if (options.faults.any()) std::this_thread::sleep_for(options.faults.step_delay);
    if (preempts() && 4 * t >= steps && enough_ranks_done()) break;
    draw.step = static_cast<std::uint64_t>(t);
    {
      const profile::PhaseScope phase(Phase::kInference);
      game.act(t, draw);
    }
    mark(Phase::kInference);
    {
      const profile::PhaseScope phase(Phase::kEnvironment);
      game.step(t);
    }
    mark(Phase::kEnvironment);
  }
  trajectory.end_at(t);
  const profile::PhaseScope phase(Phase::kInference);
  branches.each(policies.size(), [&](std::size_t p) {
    if (learners[p].algorithm().wants_values()) policies[p].evaluate(trajectory.policies()[p], t);
  });
  mark(Phase::kInference);
  if (preempts()) group.add(kRollouts, 1);
  return true;
}

// Each rank adds one to the counter per rollout, whether the rollout was complete or not.
bool Trainer::Impl::enough_ranks_done() const {
  wd::synchronize(device);
  const auto wanted = static_cast<std::int64_t>(std::ceil(config.trainer.straggler_preempt * group.size()));
  return group.add(kRollouts, 0) >= rollouts * group.size() + wanted;
}

// Summed over all ranks.
std::int64_t Trainer::Impl::env_steps_of_rollout() const {
  const std::int64_t own = std::int64_t{trajectory.length()} * share.num_envs;
  if (!preempts()) return own * group.size();
  flag.fill_(own);
  group.all_reduce(flag);
  return flag.item<std::int64_t>();
}

// Calls f. If a loss or gradient is not finite there, the error also names huge numbers of the environment.
auto Trainer::Impl::naming_huge_numbers(const auto& f) const {
  try {
    return f();
  } catch (const NotFiniteError& error) {
    const std::string huge = is_offline() ? "" : guard.huge();
    if (huge.empty()) throw;
    throw NotFiniteError(concat(error.what(), "; ", huge, ": make them smaller in the environment"));
  }
}

bool Trainer::Impl::update(const Iteration& options) {
  heartbeat::enter(heartbeat::Activity::kUpdate);
  const profile::PhaseScope phase(Phase::kUpdate);
  if (!options.faults.poison.empty()) poison(options.faults.poison);
  bool complete = true;
  if (replays(options)) {
    update_graph.run([&] { learn({}); }, stages());
  } else {
    complete = naming_huge_numbers([&] { return learn(options.should_stop); });
  }
  timeline.mark(Phase::kUpdate);
  return complete;
}

// Updates every policy. If it finds a number that is not finite, it throws on the CPU; on a GPU the finding
// stays in device memory until check().
bool Trainer::Impl::learn(const std::function<bool()>& should_stop) {
  played.keep();
  guard.check_finite(policies, clock);
  if (!is_offline()) evidence.rollout_ended(clock);
  if (!device.is_cuda()) guard.check_rollout(policies);
  prepare(learners);
  if (!update_policies(should_stop)) return false;
  if (device.is_cuda()) {
    guard.check_learned(policies, clock);
    if (!is_offline()) evidence.rollout_ended(clock);
  } else {
    for (const Policy& policy : policies) guard.check_weights(policy);
  }
  for (WeightsAverage& average : averages) average.move();
  if (!is_offline()) episodes.accumulate(clock);
  return true;
}

// With several ranks, policies use each other's time of waiting; with one rank, each policy is a branch.
bool Trainer::Impl::update_policies(const std::function<bool()>& should_stop) {
  if (group.size() > 1) return wd::update(learners, clock, should_stop);
  bool complete = true;
  branches.each(learners.size(), [&](std::size_t p) {
    complete = complete && wd::update(std::span(learners).subspan(p, 1), clock, should_stop);
  });
  return complete;
}

// The learners' checks are collective: a rank whose guard has found something takes part before it throws.
void Trainer::check() const {
  std::exception_ptr found;
  try {
    impl_->guard.check(impl_->policies);
  } catch (const std::exception&) {
    found = std::current_exception();
  }
  try {
    impl_->naming_huge_numbers([&] {
      for (const Learner& learner : impl_->learners) learner.algorithm().check();
    });
  } catch (const std::exception&) {
    if (!found) throw;
  }
  if (found) std::rethrow_exception(found);
}

Trainer::Trainer(const Config& config, const Environment& environment, Device device, ProcessGroup group)
    : impl_(std::make_unique<Impl>(config, environment, device, std::move(group))) {}
Trainer::~Trainer() = default;

bool Trainer::Impl::iterate(const Iteration& options) {
  const at::AutoDispatchBelowADInplaceOrView no_autograd;  // nothing here is differentiated by torch
  if (memory_awaited)
    throw UsageError("an algorithm remembers former rollouts: call read_memory() after restore()");
  if (std::exchange(update_taken_back, false)) exchange_played();
  const auto& should_stop = options.should_stop;
  const bool was_started = game.started();
  if (should_stop) {
    if (const Learner* learner = not_undoable())
      throw UsageError(concat("policy '",
                              policies[static_cast<std::size_t>(learner - learners.data())].name(),
                              "' learns with an algorithm whose iterations cannot be undone: call iterate() "
                              "without should_stop, and stop between iterations"));
    backup.keep(changing());
  }
  for (Learner& learner : learners) learner.enter(counts.iteration);
  bool complete = rollout(options);
  if (should_stop) complete = !any(!complete);
  if (!complete || !update(options)) {
    backup.put_back(changing());
    parameters_changed();
    trajectory.carry_back();
    game.restore_started(was_started);
    return false;
  }
  played_known = true;
  episodes.read_if_due();
  const std::int64_t env_steps = env_steps_of_rollout();
  ++rollouts;
  ++made[stages()];
  ++counts.iteration;
  counts.env_steps += env_steps;
  clock.advance(env_steps);
  for (OpponentsPlayer* const listed : opponents_of(game))
    listed->iteration_ended(trajectory, episodes.ended_games(), counts.env_steps, group);
  counts.agent_steps = counts.env_steps * replicas.spec().num_agents();
  timeline.mark(Phase::kOther);
  pace.iteration_enqueued(group.size() > 1);
  return true;
}

bool Trainer::iterate(const std::function<bool()>& should_stop) { return impl_->iterate({should_stop, {}}); }

bool iterate_with_faults(Trainer& trainer, const std::function<bool()>& should_stop,
                         const InjectedFaults& faults) {
  return trainer.impl_->iterate({should_stop, faults});
}

bool Trainer::abort(double seconds) {
  const auto drop_graphs = [this] {
    impl_->rollout_graph.reset();
    impl_->update_graph.reset();
  };
  return impl_->group.abort(drop_graphs, seconds);
}

void Trainer::rollout() { impl_->rollout({}); }

void Trainer::synchronize() { impl_->synchronize(); }

void Trainer::start_from_weights() {
  impl_->synchronize();
  for (Learner& learner : impl_->learners) learner.algorithm().weights_changed();
  for (OpponentsPlayer* const listed : opponents_of(impl_->game)) listed->weights_changed();
  for (WeightsAverage& average : impl_->averages) average.begin();
}

std::array<double, kNumPhases> Trainer::phase_seconds() {
  impl_->timeline.mark(Phase::kOther);
  return impl_->timeline.all();
}
const ProcessGroup& Trainer::group() const { return impl_->group; }
double Trainer::wall_s() const { return Seconds(Clock::now() - impl_->start).count(); }
const StepCounts& Trainer::counts() const { return impl_->counts; }
std::int64_t Trainer::iteration_under_way() const {
  return impl_->counts.iteration + 1 - impl_->pace.in_flight();
}
Trajectory& Trainer::trajectory() { return impl_->trajectory; }
Replicas& Trainer::replicas() { return impl_->replicas; }
std::vector<Policy>& Trainer::policies() { return impl_->policies; }
std::vector<NamedTensor> Trainer::average(std::size_t policy) const {
  return impl_->averages[policy].saved();
}
double Trainer::mean_return(std::size_t policy) const { return impl_->episodes.window(policy).mean(); }
bool Trainer::can_be_undone() const { return impl_->not_undoable() == nullptr; }
std::int64_t Trainer::times_made() const {
  const auto found = impl_->made.find(impl_->stages());
  return found == impl_->made.end() ? 0 : found->second;
}

bool Trainer::return_known() const { return impl_->episodes.window(0).full(); }

bool Trainer::return_reached() const {
  const TrainerSettings& trainer = impl_->config.trainer;
  return ends_by_own_return(trainer) && return_known() && mean_return(0) >= *trainer.stop_return;
}

void Trainer::read_returns() { impl_->episodes.read(); }

void Trainer::take_back_update() {
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  Impl& self = *impl_;
  if (!self.played_known || self.update_taken_back || self.played.copies().empty()) return;
  self.exchange_played();
  self.update_taken_back = true;
}
const std::vector<at::Tensor>& Trainer::played() const { return impl_->played.copies(); }

}  // namespace wd
