// minibatches.cpp: the shuffle and the gather of minibatches.
#include "src/algorithm/minibatches.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "wd/parallel.h"
#include "wd/random.h"

namespace wd {

namespace {

// [T, E, A, ...] without its last row, as [T * E, A * ...].
at::Tensor by_unit(const at::Tensor& tensor, std::int64_t units) {
  return tensor.flatten(0, 1).narrow(0, 0, units).flatten(1);
}

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
  return batch;
}

Minibatches::Minibatches(const PolicyBuffers& buffers, int steps, int num_envs, int count, int rank,
                         int world_size)
    : buffers_(buffers),
      num_envs_(num_envs),
      first_(std::int64_t{rank} * num_envs),
      all_envs_(std::int64_t{world_size} * num_envs),
      units_(std::int64_t{steps} * num_envs),
      all_units_(units_ * world_size),
      count_(count) {
  if (count == 1) return;  // nothing is gathered
  order_.resize(static_cast<std::size_t>(all_units_));
  begins_.resize(static_cast<std::size_t>(count) + 1);
  order_tensor_ = at::empty({units_}, buffers.observation.options().dtype(at::kLong));
  // A rank's part of a minibatch varies around its mean, with several ranks; eight deviations more are never seen.
  const std::int64_t most = (all_units_ + count - 1) / count, mean = most / world_size;
  const auto margin = static_cast<std::int64_t>(8.0 * std::sqrt(static_cast<double>(mean))) + 8;
  make_room(world_size == 1 ? most : std::min({most, units_, mean + margin}));
}

void Minibatches::make_room(std::int64_t units) {
  observation_ = room_for(buffers_.observation, units);
  action_ = room_for(buffers_.action, units);
  action_mask_ = room_for(buffers_.action_mask, units);
  log_prob_ = room_for(buffers_.log_prob, units);
  value_ = room_for(buffers_.value, units);
  advantage_ = room_for(buffers_.advantage, units);
  target_ = room_for(buffers_.target, units);
  mask_ = room_for(buffers_.mask, units);
}

void Minibatches::shuffle(std::uint64_t seed, std::int64_t iteration, int epoch) {
  if (count_ == 1) return;
  const RandomKey key = RandomKey::of(seed, Stream::kShuffle);
  std::iota(order_.begin(), order_.end(), 0);
  Philox bits{};
  for (std::int64_t i = all_units_ - 1; i > 0; --i) {  // Fisher and Yates, from the back
    if (i % 4 == 3 || i == all_units_ - 1) {
      bits = philox({{static_cast<std::uint32_t>(i / 4), static_cast<std::uint32_t>(iteration),
                      static_cast<std::uint32_t>(iteration >> 32), static_cast<std::uint32_t>(epoch)}},
                    key.key0, key.key1);
    }
    const auto j = static_cast<std::int64_t>(
        (std::uint64_t{bits.word[i % 4]} * static_cast<std::uint64_t>(i + 1)) >> 32);
    std::swap(order_[static_cast<std::size_t>(i)], order_[static_cast<std::size_t>(j)]);
  }
  std::vector<std::int64_t> own;  // units of this rank, by their place in its memory
  own.reserve(static_cast<std::size_t>(units_));
  for (int m = 0; m < count_; ++m) {
    for (std::int64_t k = all_units_ * m / count_; k < all_units_ * (m + 1) / count_; ++k) {
      const std::int64_t unit = order_[static_cast<std::size_t>(k)], e = unit % all_envs_ - first_;
      if (e >= 0 && e < num_envs_) own.push_back(unit / all_envs_ * num_envs_ + e);
    }
    begins_[static_cast<std::size_t>(m) + 1] = static_cast<std::int64_t>(own.size());
  }
  order_tensor_.copy_(at::from_blob(own.data(), {units_}, at::kLong));
}

Batch Minibatches::gather(int m) {
  if (count_ == 1) return whole_batch(buffers_, static_cast<int>(buffers_.mask.size(0)));
  const std::int64_t begin = begins_[static_cast<std::size_t>(m)],
                     n = begins_[static_cast<std::size_t>(m) + 1] - begin;
  if (n > mask_.size(0)) make_room(n);
  const at::Tensor index = order_tensor_.narrow(0, begin, n);
  const auto take = [&](const at::Tensor& from, at::Tensor& into) {
    const at::Tensor source = by_unit(from, units_);
    const auto gather = [&](std::int64_t first, std::int64_t last) {
      at::Tensor rows = into.slice(0, first, last);
      at::index_select_out(rows, source, 0, index.slice(0, first, last));
    };
    if (into.is_cuda()) {
      gather(0, n);
    } else {
      parallel_for(n, 1 + 32768 / source.size(1), gather);
    }
    return into.narrow(0, 0, n);
  };
  const std::int64_t rows = n * buffers_.num_agents;
  Batch batch;
  batch.observation = take(buffers_.observation, observation_)
                          .view({rows, buffers_.observation.size(3)})
                          .narrow(1, 0, buffers_.observation_size);
  batch.action = take(buffers_.action, action_);
  if (buffers_.action_mask.defined()) batch.action_mask = take(buffers_.action_mask, action_mask_);
  batch.log_prob = take(buffers_.log_prob, log_prob_).view({rows});
  batch.value = take(buffers_.value, value_).view({rows});
  batch.advantage = take(buffers_.advantage, advantage_).view({rows});
  batch.target = take(buffers_.target, target_).view({rows});
  batch.mask = take(buffers_.mask, mask_).view({rows});
  return batch;
}

}  // namespace wd
