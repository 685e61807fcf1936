// replay.cpp: allocates the ring and the batches, and calls the kernels of kernels/replay.h.
#include "wd/replay.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/gather.h"
#include "kernels/replay.h"
#include "src/algorithm/measure.h"
#include "src/device/device.h"
#include "src/device/lockstep.h"
#include "src/device/tensor_device.h"
#include "src/recorded/entries.h"
#include "src/recorded/recording.h"
#include "src/rollout/who_plays.h"
#include "wd/detail/blocks.h"
#include "wd/error.h"
#include "wd/random.h"
#include "wd/tensor_rows.h"

namespace wd {

namespace {

constexpr std::int64_t kCheckedNumbers = std::int64_t{1} << 22;  // of a read memory, at once

std::int64_t leaves_of(std::int64_t entries) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(entries)));
}

// Why replicas cannot share a batch of windows of so many transitions, or nothing.
std::string cannot_share(std::int64_t batch, std::int64_t num_envs, std::int64_t length) {
  const std::int64_t windows = batch / length;
  if (batch % length != 0 || windows == 0)
    return concat("must be a multiple of model.sequence_length = ", length,
                  ", the transitions that are learned from in a window");
  if (windows % num_envs == 0 || num_envs % windows == 0) return {};
  const std::int64_t all = num_envs * length, below = batch / all * all;
  const std::string of = length == 1 ? "" : concat(" x ", length, " steps of a window");
  return concat("must be a multiple of the ", num_envs, " replicas", of, ", as ",
                below > 0 ? concat(below, " or ") : "", below + all,
                ", or a divisor of them: every replica, or one of every so many, gives as many transitions "
                "as the others");
}

}  // namespace

void ReplaySettings::describe(Fields& field) {
  field(
      "buffer_size", buffer_size, {1, 1e12},
      "transitions of all replicas that are remembered, rounded up to whole rollouts; one transition has the "
      "rows of all agents");
  field("batch_size", batch_size, {1, 1e9}, "transitions that an update learns from");
  field("replay_ratio", replay_ratio, above(0, 1e6),
        "how many times as many transitions are learned from as are played: updates per rollout are "
        "replay_ratio x train_batch_size / batch_size, rounded to a whole number");
  field("learning_starts", learning_starts, {0, 1e12}, "environment steps before the first update");
  field("n_step", n_step, {1, 1000}, "rewards that are added before the target network's value");
  field("burn_in", burn_in, {0, 1e6},
        "of networks with a state: steps before those that are learned from, whose states are computed from "
        "the one that was stored when they were played, or from 0 if they are recorded; no gradient flows "
        "through them");
  field("prioritized", prioritized, "draw transitions by their last error instead of uniformly");
  field("priority_exponent", priority_exponent, {0, 10}, "prioritized: of the error; 0: uniform");
  field("importance_exponent", importance_exponent, {0, 10},
        "prioritized: of the weights that correct the draw; 1: wholly, 0: not at all");
}

std::int64_t ReplaySettings::entries(const TrainingShape& shape) const {
  return round_up((buffer_size + shape.num_envs - 1) / shape.num_envs, shape.rollout_steps);
}

std::int64_t ReplaySettings::batches(const TrainingShape& shape) const {
  return std::llround(replay_ratio * static_cast<double>(shape.batch()) / static_cast<double>(batch_size));
}

void ReplaySettings::check(const TrainingShape& shape, const AlgorithmSettings::Problem& problem) const {
  if (shape.rollout_steps < 1) return;  // trainer.train_batch_size is wrong
  const std::int64_t length = shape.steps_together, more = span(length) - 1;
  const std::int64_t least = (2 * shape.rollout_steps + more) * shape.num_envs;
  if (buffer_size < least && !shape.offline)
    problem(
        "buffer_size", std::to_string(buffer_size),
        concat("must be at least ", least, ": two rollouts of ", shape.rollout_steps, " steps, and ",
               more == n_step ? "n_step = " : "a window, ", more, " more, of ", shape.num_envs, " replicas"));
  if (const std::string reason = cannot_share(batch_size, shape.num_envs, length); !reason.empty())
    problem("batch_size", std::to_string(batch_size), reason);
  if (batches(shape) < 1)
    problem("replay_ratio", concat(replay_ratio),
            concat("is less than one update of batch_size = ", batch_size, " per rollout of ", shape.batch(),
                   " steps: raise it, or trainer.train_batch_size"));
  constexpr std::int64_t kMaxDraws = 65'535;  // bits of the random numbers' counter
  if (batches(shape) > kMaxDraws)
    problem("replay_ratio", concat(replay_ratio),
            concat("is ", batches(shape), " updates per rollout, and at most ", kMaxDraws,
                   " are possible: lower it, or raise batch_size"));
}

Replay::Replay(const AlgorithmContext& context, const ReplaySettings& settings, double gamma,
               double reward_scale, bool team)
    : trajectory_(context.trajectory),
      buffers_(context.buffers()),
      settings_(settings),
      gamma_(static_cast<float>(gamma)),
      reward_scale_(static_cast<float>(reward_scale)),
      team_(team),
      seed_(context.seed),
      policy_(static_cast<std::uint32_t>(context.index)),
      device_(device_holding(buffers_.value)),
      num_envs_(std::int64_t{trajectory_.num_envs()} * context.group.size()),
      first_replica_(std::int64_t{trajectory_.num_envs()} * context.group.rank()) {
  const std::string who = concat("policy '", buffers_.name, "': ");
  if (buffers_.state_size > 0) sequences_ = context.policy().sequences(ModelSettings::kReplayed);
  length_ = std::max(sequences_.length, 1);
  // A block has as many rows as one of sequences would, with all steps of its windows.
  sequences_.per_block = static_cast<int>(std::max<std::int64_t>(sequences_.per_block * length_ / span(), 1));
  const std::int64_t batch = settings_.batch_size, ranks = context.group.size();
  const std::string reason = cannot_share(batch, num_envs_, length_);
  if (context.to_train && !reason.empty()) throw UsageError(concat(who, "batch_size = ", batch, ' ', reason));
  if (context.to_train && batch / length_ % ranks != 0)
    throw UsageError(concat(who, "batch_size = ", batch, ": must be a multiple of the ", ranks, " workers",
                            length_ == 1 ? "" : concat(" x ", length_, " steps of a window")));
  per_replica_ = std::max<std::int64_t>(batch / length_ / num_envs_, 1);
  every_ = std::max<std::int64_t>(num_envs_ * length_ / batch, 1);
  units_ = batch / ranks;
  if (context.recorded != nullptr && context.to_train) {
    recorded_ = context.recorded->share(num_envs_);
    if (recorded_ < span())
      throw UsageError(concat(who, "trainer.offline has ", context.recorded->entries(), " steps, ", recorded_,
                              " for each of ", num_envs_, " replicas, and n_step = ", settings_.n_step,
                              sequences_.length == 0 ? "" : concat(" with windows of ", span(), " steps"),
                              " needs more: record more steps, or set fewer trainer.num_envs"));
  }
  allocate();
  if (recorded_ > 0) load(*context.recorded);
}

// Recordings hold no states: windows of them begin with 0.
bool Replay::remembers(const BufferField& field, const PolicyLayout& layout, bool recorded) {
  return field.is_replayed(layout) && !(recorded && field.of_sequence);
}

void Replay::allocate() {
  const std::int64_t units = units_, steps = sequences_.length > 0 ? span() : 0,
                     of_windows = windows() * steps,
                     C = recorded_ > 0 ? recorded_ : settings_.entries(shape()), E = trajectory_.num_envs(),
                     A = buffers_.num_agents;
  // Of a tensor [T or T + 1, E, ...] of the trajectory.
  const auto rows_of = [](const at::Tensor& like, std::vector<std::int64_t> first) {
    first.insert(first.end(), like.sizes().begin() + 2, like.sizes().end());
    return zeros_together(first, like.options());
  };
  for (const BufferField& field : buffer_fields()) {
    const at::Tensor& rows = field.of(buffers_);
    if (!field.is_replayed(buffers_) || !rows.defined()) continue;
    if (remembers(field, buffers_, recorded_ > 0)) remembered_.push_back({&field, rows_of(rows, {E, C})});
    if (!field.in_batch(buffers_)) continue;
    const std::int64_t columns = field.form(buffers_)->columns;
    const auto allocate = [&](Batch& batch, std::int64_t n) {
      const at::Tensor flat = rows_of(rows, {n}).flatten(0, 1);
      field.in(batch) = columns > 0 ? flat.narrow(-1, 0, columns) : flat;
    };
    if (field.of_sequence) {
      allocate(batch_.all, windows());
      batch_.now.state = settings_.burn_in > 0 ? at::zeros_like(batch_.all.state) : batch_.all.state;
      continue;
    }
    allocate(batch_.now, units);
    if (field.last_row && field.recorded) allocate(batch_.next, units);
    if (steps > 0) allocate(batch_.all, of_windows);
  }
  flags_ = rows_of(buffers_.agent_terminated, {E, C});
  const auto floats = buffers_.reward.options();
  begun_ = at::zeros({1}, floats.dtype(at::kLong));
  if (settings_.prioritized) {
    tree_ = at::zeros({E, 2 * leaves_of(C)}, floats);
    highest_ = at::ones({E}, floats);
  }
  batch_.entry = at::zeros({units}, floats.dtype(at::kLong));
  next_entry_ = at::zeros_like(batch_.entry);
  if (steps > 0) {
    batch_.now.sequences = sequences_;
    batch_.steps = static_cast<int>(steps);
    batch_.burn_in = settings_.burn_in;
    batch_.successor = at::zeros_like(batch_.entry);
    all_entries_ = at::zeros({of_windows}, batch_.entry.options());
    first_entry_ = at::zeros({windows()}, batch_.entry.options());
  }
  batch_.now.mask = at::zeros({units * A}, flags_.options());
  batch_.next.mask = batch_.now.mask;
  batch_.reward = at::zeros({units * A}, floats);
  batch_.discount = at::zeros_like(batch_.reward);
  batch_.weight = at::zeros_like(batch_.reward);
}

at::Tensor Replay::ring_of(at::Tensor PolicyBuffers::* tensor) const {
  for (const auto& [field, rows] : remembered_)
    if (tensor != nullptr && field->tensor == tensor) return rows;
  return {};
}

// The rows of a replica follow one another in files too. Observations may be stored in another number format.
void Replay::load(const Recording& recording) {
  for (std::int64_t e = 0; e < flags_.size(0); ++e) {
    const std::int64_t first = (first_replica_ + e) * recorded_;
    for (const auto& [field, rows] : remembered_) {
      if (!field->recorded) continue;
      const std::int64_t columns = field->form(buffers_)->columns;
      const at::Tensor into = columns > 0 ? rows[e].narrow(-1, 0, columns) : rows[e];
      recording.read(
          field->name_of(buffers_), first, recorded_,
          [&](std::int64_t at, const at::Tensor& piece) { into.narrow(0, at, piece.size(0)).copy_(piece); });
      if (field->tensor == &PolicyBuffers::action) erase_impossible_actions(into, buffers_.action_space);
    }
    flags_[e].copy_(recorded_flags(recording, first, recorded_));
    // An agent begins where it plays and did not in the step before, as in a reset step.
    const at::Tensor restarted = ring_of(&PolicyBuffers::restarted),
                     played = flags_[e].bitwise_and(kReplayPlayed);
    if (!restarted.defined()) continue;
    restarted[e].copy_(played);
    restarted[e].slice(0, 1).mul_(1 - played.slice(0, 0, -1));
  }
  admit_recorded();
}

// Prioritized: gives all that can be drawn the same priority.
void Replay::admit_recorded() {
  if (!tree_.defined()) return;
  TrainingClock clock(device_);
  replay_admit(current_queue(device_), ring(clock));
}

ReplayRing Replay::ring(const TrainingClock& clock) const {
  ReplayRing ring;
  ring.steps = recorded_ > 0 ? static_cast<int>(recorded_) : trajectory_.steps();
  ring.loaded = recorded_;
  ring.num_envs = trajectory_.num_envs();
  ring.num_agents = buffers_.num_agents;
  ring.capacity = flags_.size(1);
  ring.n_step = settings_.n_step;
  ring.burn_in = settings_.burn_in;
  ring.length = length_;
  ring.time = clock.time();
  ring.begun = begun_.const_data_ptr<std::int64_t>();
  ring.flags = flags_.mutable_data_ptr<std::uint8_t>();
  if (!tree_.defined()) return ring;
  ring.tree = tree_.mutable_data_ptr<float>();
  ring.leaves = tree_.size(1) / 2;
  ring.highest = highest_.mutable_data_ptr<float>();
  return ring;
}

bool Replay::learns(std::int64_t iteration) const {
  if (recorded_ > 0) return true;
  const std::int64_t steps = (iteration + 1 - begun_here_) * trajectory_.steps();
  return steps * num_envs_ >= settings_.learning_starts && steps >= span();
}

void Replay::append(const TrainingClock& clock) {
  if (recorded_ > 0) return;
  ReplayAppendArgs args;
  args.ring = ring(clock);
  for (const auto& [field, rows] : remembered_) {
    WD_CHECK(args.num_arrays < kMaxReplayArrays, "more than ", kMaxReplayArrays, " arrays are remembered");
    args.arrays[args.num_arrays++] = GatheredArray::of(
        field->of(buffers_).const_data_ptr(), rows.mutable_data_ptr(), rows.stride(1) * rows.element_size());
  }
  args.active = buffers_.active.const_data_ptr<std::uint8_t>();
  args.agent_terminated = buffers_.agent_terminated.const_data_ptr<std::uint8_t>();
  args.terminated = buffers_.terminated.const_data_ptr<std::uint8_t>();
  args.truncated = buffers_.truncated.const_data_ptr<std::uint8_t>();
  args.reset_step = buffers_.reset_step.const_data_ptr<std::uint8_t>();
  args.who = who_plays(buffers_);
  const Queue queue = current_queue(device_);
  replay_append(queue, args);
  if (tree_.defined()) replay_admit(queue, args.ring);
}

const ReplayBatch& Replay::draw(const TrainingClock& clock, int draw, const float* importance) {
  ReplayDrawArgs args;
  args.ring = ring(clock);
  args.units = units_;
  args.per_block = std::max(sequences_.per_block, 1);
  args.per_replica = per_replica_;
  args.every = every_;
  args.first_replica = first_replica_;
  args.draw = draw;
  args.key = RandomKey::of(seed_, RandomUse::kReplay);
  args.policy = policy_;
  args.gamma = gamma_;
  args.reward_scale = reward_scale_;
  args.team = team_;
  args.importance = importance;
  args.stored_reward = ring_of(&PolicyBuffers::reward).const_data_ptr<float>();
  args.entry = batch_.entry.mutable_data_ptr<std::int64_t>();
  args.next = next_entry_.mutable_data_ptr<std::int64_t>();
  args.window = at_row<std::int64_t>(all_entries_);
  args.first = at_row<std::int64_t>(first_entry_);
  args.successor = at_row<std::int64_t>(batch_.successor);
  args.reward = batch_.reward.mutable_data_ptr<float>();
  args.discount = batch_.discount.mutable_data_ptr<float>();
  args.weight = batch_.weight.mutable_data_ptr<float>();
  args.mask = batch_.now.mask.mutable_data_ptr<std::uint8_t>();
  const Queue queue = current_queue(device_);
  replay_draw(queue, args);
  GatherArgs now, next, all, state;
  now.rows = next.rows = units_;
  now.index = args.entry;
  next.index = args.next;
  all.rows = windows() * batch_.steps;
  all.index = args.window;
  state.rows = windows();
  state.index = args.first;
  const auto add = [](GatherArgs& rows, const at::Tensor& from, const at::Tensor& to) {
    rows.add(from.const_data_ptr(), to.mutable_data_ptr(), from.stride(1) * from.element_size());
  };
  for (const auto& [field, rows] : remembered_) {
    if (!field->in_batch(buffers_)) continue;
    if (field->of_sequence) {
      add(state, rows, batch_.all.state);
      continue;
    }
    add(now, rows, field->in(batch_.now));
    if (field->last_row && field->recorded) add(next, rows, field->in(batch_.next));
    if (batch_.steps > 0) add(all, rows, field->in(batch_.all));
  }
  wd::gather(queue, now, next);
  if (batch_.steps > 0) wd::gather(queue, all, state);
  return batch_;
}

void Replay::set_priorities(const TrainingClock& clock, const at::Tensor& error) {
  if (!tree_.defined()) return;
  ReplayPriorityArgs args;
  args.ring = ring(clock);
  args.units = units_;
  args.per_block = std::max(sequences_.per_block, 1);
  args.per_replica = per_replica_;
  args.entry = batch_.entry.const_data_ptr<std::int64_t>();
  args.error = error.const_data_ptr<float>();
  args.mask = batch_.now.mask.const_data_ptr<std::uint8_t>();
  args.exponent = static_cast<float>(settings_.priority_exponent);
  replay_priorities(current_queue(device_), args);
}

std::vector<NamedTensor> Replay::state() const {
  std::vector<NamedTensor> all = {{"replay.begun", begun_}};
  if (highest_.defined()) all.push_back({"replay.highest", highest_, true});
  return all;
}

void Replay::state_changed() { begun_here_ = begun_.item<std::int64_t>(); }

std::int64_t Replay::filled(std::int64_t iteration) const {
  if (recorded_ > 0) return recorded_;
  const std::int64_t steps = trajectory_.steps(), rollouts = flags_.size(1) / steps;
  return std::clamp<std::int64_t>(iteration - begun_here_, 0, rollouts) * steps;
}

// A step of the newest rollout's last entry has age 0.
double Replay::mean_age(std::int64_t iteration) const {
  if (recorded_ > 0) return std::nan("");
  const std::int64_t capacity = flags_.size(1), newest = (iteration - begun_here_) * trajectory_.steps() - 1;
  const at::Tensor slot = batch_.entry.cpu().remainder(capacity);
  const at::Tensor steps = (newest - slot).remainder(capacity);
  return steps.to(at::kDouble).mean().item<double>() * static_cast<double>(num_envs_);
}

Replay::Known Replay::known_returns(std::int64_t iteration, std::int64_t units,
                                    const ProcessGroup& group) const {
  constexpr std::int64_t kReplicas = 16, kRows = std::int64_t{1} << 16;
  const std::int64_t E = flags_.size(0), C = flags_.size(1), A = flags_.size(2);
  const std::int64_t every = (num_envs_ + kReplicas - 1) / kReplicas,
                     first = std::min((every - first_replica_ % every) % every, E),
                     n = std::min(filled(iteration), std::max<std::int64_t>(kRows / (kReplicas * A), 1)),
                     end = recorded_ > 0 ? recorded_ : (iteration - begun_here_) * trajectory_.steps();
  const at::Tensor entry = at::arange(end - n, end), slot = entry.remainder(C);
  const at::Tensor replica = at::arange(first, E, every);
  const at::Tensor place = (slot.unsqueeze(1) + C * replica).flatten();  // [n * replicas]
  const auto read = [&](const at::Tensor& ring, const at::Tensor& places) {
    return ring.flatten(0, 1).index_select(0, places.to(ring.device()));
  };
  const auto steps = [&](const at::Tensor& ring) { return read(ring, place).cpu().view({n, -1}); };
  const at::Tensor flags = steps(flags_), over = flags.bitwise_and(kReplayOver).ne(0);
  const Followed followed =
      returns_followed(steps(ring_of(&PolicyBuffers::reward)) * static_cast<double>(reward_scale_), over,
                       flags.bitwise_and(kReplayEnds).ne(0).logical_or(over), gamma_);
  const at::Tensor known = followed.known.mul(flags.bitwise_and(kReplayPlayed)).view({-1, A});
  const at::Tensor any = known.any(1), count = any.sum().view({1});
  group.all_reduce(count);
  const std::int64_t spacing = count.item<std::int64_t>() / units + 1;
  const at::Tensor even = entry.remainder(spacing).eq(0).unsqueeze(1).expand({n, replica.numel()}).flatten();
  const at::Tensor chosen = any.logical_and(even).nonzero().flatten();
  Known all;
  for (const auto& [field, rows] : remembered_) {
    if (!field->in_batch(buffers_)) continue;
    const std::int64_t columns = field->form(buffers_)->columns;
    const at::Tensor flat = read(rows, place.index_select(0, chosen)).flatten(0, 1);
    field->in(all.batch) = columns > 0 ? flat.narrow(-1, 0, columns) : flat;
  }
  if (all.batch.state.defined()) all.batch.sequences = {1, 1};
  all.batch.mask = known.index_select(0, chosen).flatten();
  all.value = followed.value.view({-1, A}).index_select(0, chosen).flatten();
  return all;
}

double Replay::largest_reward(const ProcessGroup& group) const {
  const at::Tensor size = ring_of(&PolicyBuffers::reward).abs().mul(flags_.bitwise_and(kReplayPlayed));
  const at::Tensor largest = size.max().cpu().to(at::kDouble).view({1});
  group.all_reduce(largest, ReduceOp::kMax);
  return largest.item<double>() * (team_ ? buffers_.num_agents : 1);
}

// Slots are filled from the first on. What was recorded is read again from its files.
std::vector<NamedTensor> Replay::memory(std::int64_t iteration) const {
  const std::int64_t n = filled(iteration);
  std::vector<NamedTensor> all;
  if (recorded_ == 0) {
    for (const auto& [field, rows] : remembered_) {
      const char* const kind = field->of_sequence ? "network." : "";  // a stream may be called state
      all.push_back({kind + field->name_of(buffers_), rows.narrow(1, 0, n), true});
    }
    all.push_back({"flags", flags_.narrow(1, 0, n), true});
  }
  if (tree_.defined()) all.push_back({"priority", tree_.narrow(1, tree_.size(1) / 2, n), true});
  return all;
}

std::string Replay::memory_fault(std::int64_t iteration) const {
  if (begun_here_ > iteration)
    return concat("replay.begun is ", begun_here_, " after ", iteration, " iterations");
  const std::int64_t n = filled(iteration);
  if (tree_.defined()) {
    const auto fault = [](const at::Tensor& priorities) {
      const at::Tensor numbers = priorities.isfinite().logical_and(priorities.ge(0));
      return !numbers.all().item<bool>();
    };
    if (fault(highest_) || fault(tree_.narrow(1, tree_.size(1) / 2, n)))
      return "a priority is negative or not finite";
  }
  const std::int64_t rows = flags_.size(2) * static_cast<std::int64_t>(buffers_.row_size());
  const std::int64_t most = std::max<std::int64_t>(kCheckedNumbers / std::max<std::int64_t>(rows, 1), 1);
  for (std::int64_t e = 0; e < flags_.size(0) && recorded_ == 0; ++e)
    for (std::int64_t c = 0; c < n; c += most)
      if (const std::string found = entries_fault(e, c, std::min(most, n - c)); !found.empty()) return found;
  return {};
}

std::string Replay::entries_fault(std::int64_t e, std::int64_t first, std::int64_t n) const {
  const auto part = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor[e].narrow(0, first, n).contiguous().cpu() : tensor;
  };
  const at::Tensor flags = part(flags_);
  constexpr int kAll = kReplayPlayed | kReplayOver | kReplayEnds;
  if (flags.gt(kAll).any().item<bool>())
    return concat("tensor 'flags', replica ", first_replica_ + e, ": has numbers above ", kAll);
  std::optional<EntryFault> fault = entry_fault({.observation = part(ring_of(&PolicyBuffers::observation)),
                                                 .action_mask = part(ring_of(&PolicyBuffers::action_mask)),
                                                 .action = part(ring_of(&PolicyBuffers::action)),
                                                 .reward = part(ring_of(&PolicyBuffers::reward)),
                                                 .played = flags.bitwise_and(kReplayPlayed)},
                                                buffers_.action_space);
  for (const auto& [field, rows] : remembered_)
    if (!fault && (field->stream >= 0 || field->of_sequence))
      fault = number_fault(field->name_of(buffers_), part(rows));
  if (!fault) return {};
  return concat("tensor '", fault->tensor, "', replica ", first_replica_ + e, ", entry ",
                first + fault->entry, ", agent ", fault->agent, ": is ", fault->what);
}

// The nodes above the priorities follow from them, with the same bits.
void Replay::memory_changed() {
  if (!tree_.defined()) return;
  for (std::int64_t nodes = tree_.size(1) / 2; nodes > 1; nodes /= 2)
    tree_.narrow(1, nodes / 2, nodes / 2)
        .copy_(tree_.slice(1, nodes, 2 * nodes, 2) + tree_.slice(1, nodes + 1, 2 * nodes, 2));
}

void Replay::forget(std::int64_t iteration) {
  begun_.fill_(iteration);
  begun_here_ = iteration;
  if (!tree_.defined()) return;
  tree_.zero_();
  highest_.fill_(1.0);
  if (recorded_ > 0) admit_recorded();
}

double Replay::rows(const WorkerShape& worker, const ReplaySettings& settings) {
  return static_cast<double>(settings.batch_size) * worker.replicas / static_cast<double>(worker.num_envs) *
         worker.layout.num_agents;
}

double Replay::bytes(const WorkerShape& worker, const ReplaySettings& settings) {
  const TrainingShape shape{.num_envs = worker.num_envs, .rollout_steps = worker.rollout_steps};
  const std::int64_t C = worker.recorded > 0 ? worker.recorded : settings.entries(shape);
  const auto entries = static_cast<double>(C);
  const double agents = worker.layout.num_agents;
  const bool state = worker.layout.state_size > 0;
  const std::int64_t length = worker.model.replayed_together();
  const double steps = state ? static_cast<double>(settings.span(length)) : 0.0;
  double of_entry = agents;  // flags
  double of_unit = agents * (3.0 * sizeof(float) + 1.0) + (state ? 3.0 : 2.0) * sizeof(std::int64_t),
         of_window = (state ? steps + 1.0 : 0.0) * sizeof(std::int64_t);
  for (const BufferField& field : buffer_fields()) {
    if (!field.is_replayed(worker.layout)) continue;
    const double bytes = field.bytes(worker.layout);
    if (remembers(field, worker.layout, worker.recorded > 0)) of_entry += bytes;
    if (!field.in_batch(worker.layout)) continue;
    of_window += (field.of_sequence ? (settings.burn_in > 0 ? 2.0 : 1.0) : steps) * bytes;
    if (!field.of_sequence) of_unit += (field.last_row && field.recorded ? 2.0 : 1.0) * bytes;
  }
  double of_replica = entries * of_entry;
  if (settings.prioritized) of_replica += (2.0 * static_cast<double>(leaves_of(C)) + 1.0) * sizeof(float);
  const double units = rows(worker, settings) / agents;
  return worker.replicas * of_replica + units * (of_unit + of_window / static_cast<double>(length)) +
         sizeof(std::int64_t);
}

}  // namespace wd
