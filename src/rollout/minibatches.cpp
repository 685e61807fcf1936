// minibatches.cpp: shuffles transitions and gathers minibatches.
#include "src/rollout/minibatches.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "kernels/gather.h"
#include "kernels/sequences.h"
#include "src/device/device.h"
#include "src/device/lockstep.h"
#include "src/device/tensor_device.h"
#include "src/rollout/who_plays.h"
#include "wd/error.h"
#include "wd/random.h"

namespace wd {

Batch whole_batch(const PolicyBuffers& buffers, int steps) {
  Batch batch;
  for (const BufferField& field : buffer_fields()) {
    const at::Tensor& tensor = field.of(buffers);
    if (field.in_batch(buffers) && tensor.defined())
      field.in(batch) = tensor.slice(0, 0, steps).flatten(0, 2);
  }
  batch.observation = batch.observation.narrow(1, 0, buffers.row_size());
  batch.activations = buffers.activations.get();
  return batch;
}

Minibatches::Minibatches(const PolicyBuffers& buffers, int steps, int num_envs, int count, int rank,
                         Sequences sequences, std::int64_t share, int wait)
    : buffers_(buffers), sequences_(sequences), length_(std::max(sequences.length, 1)), wait_(wait) {
  WD_CHECK(steps % length_ == 0, "a rollout of ", steps, " steps is not a multiple of ", length_);
  const std::int64_t all = steps / length_;
  assignment_.steps = static_cast<int>(all);
  assignment_.share = static_cast<int>(share > 0 ? share : all);
  assignment_.num_envs = num_envs;
  assignment_.count = count;
  assignment_.first_replica = std::int64_t{rank} * num_envs;
  units_ = std::int64_t{assignment_.share} * num_envs;
  if (!gathers(count, sequences.length > 0, assignment_.share, all)) return;
  const std::int64_t max_units = assignment_.capacity = (units_ + count - 1) / count;
  order_ = at::zeros({count, max_units}, buffers.observation.options().dtype(at::kLong));
  assignment_.order = order_.mutable_data_ptr<std::int64_t>();
  if (sequences.length > 0) {
    steps_ = at::zeros({max_units * length_}, order_.options());
    first_ = at::zeros({max_units}, order_.options());
  }
  if (wait_ >= 0) row_ = at::zeros({max_units}, order_.options());
  for (const BufferField& field : buffer_fields()) {
    const at::Tensor& tensor = field.of(buffers);
    if (!field.in_batch(buffers) || !tensor.defined()) continue;
    std::vector<std::int64_t> shape = tensor.sizes().vec();
    shape.erase(shape.begin());
    if (wait_ >= 0) shape[1] = 1;
    shape[0] = field.of_sequence ? max_units : max_units * length_;
    field.in(gathered_) = zeros_together(shape, tensor.options());
  }
}

void Minibatches::shuffle(std::uint64_t seed, const TrainingTime* time, int epoch) {
  if (!gathers()) return;
  assignment_.key = RandomKey::of(seed, RandomUse::kShuffle);
  assignment_.time = time;
  assignment_.epoch = static_cast<std::uint32_t>(epoch);
  assign_minibatches(current_queue(device_holding(order_)), assignment_);
}

// Number of units of minibatch m; all units are assigned round-robin.
std::int64_t Minibatches::size_of(int m) const {
  const std::int64_t first = (m - first_minibatch(assignment_) + count()) % count();  // the first unit of m
  return first < units_ ? (units_ - first - 1) / count() + 1 : 0;
}

Batch Minibatches::gather(int m) {
  if (!gathers()) return whole_batch(buffers_, static_cast<int>(buffers_.mask.size(0)));
  const std::int64_t units = size_of(m);
  const Queue queue = current_queue(device_holding(order_));
  GatherArgs rows, sequences;
  rows.rows = units * length_;
  sequences.rows = units;
  rows.index = assignment_.order + m * assignment_.capacity;
  if (sequences_.length > 0) {
    auto* const steps = steps_.mutable_data_ptr<std::int64_t>();
    auto* const first = first_.mutable_data_ptr<std::int64_t>();
    sequence_steps(queue, {rows.rows, sequences_.length, sequences_.per_block, assignment_.num_envs,
                           rows.index, steps, first});
    rows.index = steps;
    sequences.index = first;
  }
  if (wait_ >= 0) {
    auto* const row = row_.mutable_data_ptr<std::int64_t>();
    teaching_rows(queue, {units, rows.index, buffers_.mask.const_data_ptr<std::uint8_t>(),
                          buffers_.action_mask.const_data_ptr<std::uint8_t>() + wait_,
                          static_cast<int>(buffers_.action_space.choices()), row});
    rows.index = row;
  }
  Batch batch;
  batch.sequences = sequences_;
  for (const BufferField& field : buffer_fields()) {
    if (!field.in_batch(buffers_) || !field.in(gathered_).defined()) continue;
    const at::Tensor& from = field.of(buffers_);
    const at::Tensor& into = field.in(gathered_);
    GatherArgs& args = field.of_sequence ? sequences : rows;
    args.add(from.const_data_ptr(), into.mutable_data_ptr(), into.stride(0) * into.element_size());
    field.in(batch) = into.narrow(0, 0, args.rows).flatten(0, 1);
  }
  batch.observation = batch.observation.narrow(1, 0, buffers_.row_size());
  wd::gather(queue, rows);
  if (sequences.num_arrays > 0) wd::gather(queue, sequences);
  return batch;
}

int Minibatches::wait_of(const Spec& spec, const PolicyLayout& policy, const AlgorithmTraits& traits) {
  const bool is_plain = !policy.as_table() && policy.streams.empty() && policy.state_size == 0 &&
                        traits.mixer.kind == Mixer::kNone;
  return is_plain ? waiting_choice(spec, policy) : -1;
}

}  // namespace wd
