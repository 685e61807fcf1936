// action_spread.cpp: weighted standard deviations along each axis of [T, E, A, head].
#include "src/trainer/action_spread.h"

#include <ATen/ATen.h>

namespace wd {

ActionSpread action_spread(const PolicyBuffers& buffers) {
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
    const at::Tensor groups = (n > 0.0).sum().clamp_min(1);
    const at::Tensor mean = (deviation.sum(at::IntArrayRef{0, 1}) / groups).cpu().contiguous();
    spread.by_axis[axis].assign(mean.const_data_ptr<double>(), mean.const_data_ptr<double>() + mean.numel());
  }
  return spread;
}

}  // namespace wd
