// minibatches.cpp: the shuffle and the gather of minibatches.
#include "src/algorithm/minibatches.h"

#include <ATen/ATen.h>

#include "kernels/gather.h"
#include "src/device.h"
#include "src/tensor_device.h"
#include "wd/random.h"

namespace wd {

namespace {

at::Tensor room_for(const at::Tensor& tensor, std::int64_t units) {
  return tensor.defined() ? at::empty({units, tensor.flatten(0, 1).flatten(1).size(1)}, tensor.options())
                          : at::Tensor();
}

}  // namespace

Batch whole_batch(const PolicyBuffers& buffers, int steps) {
  Batch batch;
  const std::int64_t rows = buffers.mask.numel();
  batch.observation = buffers.observation_rows(0, steps);
  batch.action = buffers.action;
  batch.action_mask = buffers.action_mask;
  batch.log_prob = buffers.log_prob.view({rows});
  batch.value = buffers.value.flatten().narrow(0, 0, rows);
  batch.advantage = buffers.advantage.view({rows});
  batch.target = buffers.target.view({rows});
  batch.mask = buffers.mask.view({rows});
  batch.activations = buffers.activations.get();
  return batch;
}

Minibatches::Minibatches(const PolicyBuffers& buffers, int steps, int num_envs, int count, int rank)
    : buffers_(buffers), units_(std::int64_t{steps} * num_envs) {
  deal_.steps = steps;
  deal_.num_envs = num_envs;
  deal_.count = count;
  deal_.first_replica = std::int64_t{rank} * num_envs;
  if (count == 1) return;  // nothing is gathered
  const std::int64_t most = deal_.capacity = (units_ + count - 1) / count;
  order_ = at::zeros({count, most}, buffers.observation.options().dtype(at::kLong));
  deal_.order = order_.mutable_data_ptr<std::int64_t>();
  observation_ = room_for(buffers.observation, most);
  action_ = room_for(buffers.action, most);
  action_mask_ = room_for(buffers.action_mask, most);
  log_prob_ = room_for(buffers.log_prob, most);
  value_ = room_for(buffers.value, most);
  advantage_ = room_for(buffers.advantage, most);
  target_ = room_for(buffers.target, most);
  mask_ = room_for(buffers.mask, most);
}

void Minibatches::shuffle(std::uint64_t seed, const TrainingTime* time, int epoch) {
  if (count() == 1) return;
  deal_.key = RandomKey::of(seed, Stream::kShuffle);
  deal_.time = time;
  deal_.epoch = static_cast<std::uint32_t>(epoch);
  deal(current_queue(device_holding(order_)), deal_);
}

// Of units 0 .. T E - 1, which are dealt in turn.
std::int64_t Minibatches::size_of(int m) const {
  const std::int64_t first =
      (m - first_minibatch(deal_) + count()) % count();  // the first unit that m is dealt
  return first < units_ ? (units_ - first - 1) / count() + 1 : 0;
}

Batch Minibatches::gather(int m) {
  if (count() == 1) return whole_batch(buffers_, static_cast<int>(buffers_.mask.size(0)));
  const std::int64_t n = size_of(m);
  GatherArgs args;
  args.rows = n;
  args.index = deal_.order + m * deal_.capacity;
  const auto take = [&](const at::Tensor& from, const at::Tensor& into) {
    args.add(from.const_data_ptr(), into.mutable_data_ptr(), into.stride(0) * into.element_size());
    return into.narrow(0, 0, n);
  };
  const std::int64_t rows = n * buffers_.num_agents;
  Batch batch;
  batch.observation = take(buffers_.observation, observation_)
                          .view({n * buffers_.observation.size(2), buffers_.observation.size(3)})
                          .narrow(1, 0, buffers_.row_size());
  batch.action = take(buffers_.action, action_);
  if (buffers_.action_mask.defined()) batch.action_mask = take(buffers_.action_mask, action_mask_);
  batch.log_prob = take(buffers_.log_prob, log_prob_).view({rows});
  batch.value = take(buffers_.value, value_).view({rows});
  batch.advantage = take(buffers_.advantage, advantage_).view({rows});
  batch.target = take(buffers_.target, target_).view({rows});
  batch.mask = take(buffers_.mask, mask_).view({rows});
  wd::gather(current_queue(device_holding(order_)), args);
  return batch;
}

}  // namespace wd
