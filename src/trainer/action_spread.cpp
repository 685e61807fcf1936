// action_spread.cpp: weighted standard deviations along each axis of [T, E, A, head].
#include "src/trainer/action_spread.h"

#include <ATen/ATen.h>

#include <cmath>

#include "wd/rollout_algorithm.h"

namespace wd {

ActionSpread action_spread(const PolicyBuffers& buffers, const ProcessGroup& group) {
  const at::Tensor action = buffers.action.to(at::kDouble);
  // 1 for each transition that happened.
  const at::Tensor counts = buffers.mask.to(at::kDouble).unsqueeze(-1);
  const at::Tensor first = action * counts, second = action * first;
  ActionSpread spread;
  for (std::size_t axis = 0; axis < spread.by_axis.size(); ++axis) {
    const auto along = static_cast<std::int64_t>(axis);
    const at::Tensor n = counts.sum(along), some = n.clamp_min(1.0);
    const at::Tensor deviation =
        (second.sum(along) / some - (first.sum(along) / some).square()).clamp_min(0.0).sqrt();
    const at::Tensor groups = (n > 1.0).sum().to(at::kDouble).view({1});  // one member has deviation 0
    const at::Tensor sums = at::cat({deviation.sum(at::IntArrayRef{0, 1}).cpu(), groups.cpu()});
    group.all_reduce(sums);
    const auto* const sum = sums.const_data_ptr<double>();
    const std::int64_t heads = sums.numel() - 1;
    for (std::int64_t k = 0; k < heads; ++k) spread.by_axis[axis].push_back(ratio(sum[k], sum[heads]));
  }
  return spread;
}

std::vector<double> saturated_share(const PolicyBuffers& buffers, const ProcessGroup& group) {
  constexpr double kSaturated = 0.99;  // actions are in half-widths
  if (!buffers.action_space.has_bounds()) return {};
  const at::Tensor counts = buffers.mask.to(at::kDouble).unsqueeze(-1);
  const at::Tensor beyond = buffers.action.abs().gt(kSaturated) * counts;
  const at::Tensor sums = at::cat({beyond.sum(at::IntArrayRef{0, 1, 2}).cpu(), counts.sum().view({1}).cpu()});
  group.all_reduce(sums);
  const auto* const sum = sums.const_data_ptr<double>();
  const std::vector<Bounds>& bounds = buffers.action_space.bounds;
  std::vector<double> shares;
  for (std::size_t k = 0; k < bounds.size(); ++k)
    shares.push_back(bounds[k].are_finite() ? ratio(sum[k], sum[bounds.size()]) : std::nan(""));
  return shares;
}

}  // namespace wd
