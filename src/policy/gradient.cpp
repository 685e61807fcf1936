// gradient.cpp: the gradient of a batch, block by block, in lanes whose sums are added in lane order.
#include <ATen/ATen.h>

#include <algorithm>

#include "kernels/reduce.h"
#include "src/device/device.h"
#include "src/nets/mlp.h"
#include "src/policy/impl.h"
#include "wd/detail/vectors.h"
#include "wd/heartbeat.h"

namespace wd {

LossArgs Policy::Impl::loss_args(Lane& lane, const Activations& nets, const Batch& batch,
                                 const LossSettings& settings, std::int64_t begin, std::int64_t end) const {
  LossArgs args;
  args.rows = end - begin;
  args.layout = layout;
  args.ppo = settings.ppo;
  args.with_value = settings.with_value;
  args.fixed = {settings.clip, settings.value_clip, settings.value_coeff, settings.entropy_coeff};
  if (settings.scheduled.defined())
    args.scheduled = reinterpret_cast<const LossCoefficients*>(settings.scheduled.const_data_ptr<float>());
  args.output = nets.actor->output.const_data_ptr<float>();
  args.output_stride = static_cast<int>(nets.actor->output.stride(0));
  args.value = critic ? nets.critic->output.const_data_ptr<float>() : args.output + columns();
  args.value_stride = critic ? 1 : args.output_stride;
  args.action =
      static_cast<const std::int32_t*>(batch.action.const_data_ptr()) + begin * layout.action_width();
  if (batch.action_mask.defined())
    args.action_mask = batch.action_mask.const_data_ptr<std::uint8_t>() + begin * columns();
  args.old_log_prob = batch.log_prob.const_data_ptr<float>() + begin;
  args.old_value = batch.value.const_data_ptr<float>() + begin;
  args.advantage = batch.advantage.const_data_ptr<float>() + begin;
  if (settings.advantage_norm.defined())
    args.advantage_norm = settings.advantage_norm.const_data_ptr<float>();
  args.target = batch.target.const_data_ptr<float>() + begin;
  args.mask = batch.mask.const_data_ptr<std::uint8_t>() + begin;
  args.output_grad = lane.output_grad.mutable_data_ptr<float>();
  args.grad_stride = static_cast<int>(lane.output_grad.stride(0));
  args.value_grad = critic ? lane.value_grad.mutable_data_ptr<float>() : args.output_grad + columns();
  args.value_grad_stride = critic ? 1 : args.grad_stride;
  args.log_std_grad = lane.log_std_grad.mutable_data_ptr<float>();
  args.row_sums = lane.row_sums.mutable_data_ptr<float>();
  return args;
}

void Policy::Impl::accumulate_block(Lane& lane, const Batch& batch, const LossSettings& settings,
                                    std::int64_t begin, std::int64_t end) {
  const std::int64_t n = end - begin;
  const NetworkInput input = batch_input(batch, begin, end);
  const Queue queue = current_queue(device);
  Activations kept;
  if (batch.activations != nullptr) {
    kept = batch.activations->view(begin, n, lane.own);
  } else {
    forward_block(lane.own, input);
  }
  Activations& nets = batch.activations != nullptr ? kept : lane.own;
  loss(queue, loss_args(lane, nets, batch, settings, begin, end));
  add_row_sums(queue, lane.row_sums.const_data_ptr<float>(), kNumLossSums, n,
               lane.partial.mutable_data_ptr<double>(), lane.totals.mutable_data_ptr<double>());
  actor->backward(part(input, false), lane.output_grad.narrow(0, 0, n), *nets.actor, *lane.actor_grad);
  if (critic)
    critic->backward(part(input, true), lane.value_grad.narrow(0, 0, n), *nets.critic, *lane.critic_grad);
  if (layout.components == 0) return;
  if (device.is_cuda()) {
    lane.log_std_total.addmv_(lane.log_std_grad.narrow(0, 0, n).t(), lane.ones.narrow(0, 0, n));
  } else {
    add_columns(lane.log_std_grad.const_data_ptr<float>(), n, layout.components,
                lane.log_std_total.mutable_data_ptr<float>());
  }
}

// Adds the other lanes' tensors to that of the first lane, in lane order. A GPU has one lane.
void Policy::Impl::sum_lanes(std::vector<Lane>& lanes, std::int64_t count,
                             const std::function<const at::Tensor&(const Lane&)>& tensor) {
  if (count == 1) return;
  const at::Tensor& sum = tensor(lanes[0]);
  auto* const to = sum.mutable_data_ptr<float>();
  parallel_for(sum.numel(), 32768, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t l = 1; l < count; ++l) {
      const auto* const lane = tensor(lanes[static_cast<std::size_t>(l)]).const_data_ptr<float>();
      with_vectors([&](auto) {
        for (std::int64_t i = begin; i < end; ++i) to[i] += lane[i];
      });
    }
  });
}

// Sums gradients and totals over lanes, in lane order; the first lane's are those of the policy.
void Policy::Impl::reduce_lanes(std::vector<Lane>& lanes, std::int64_t count) {
  sum_lanes(lanes, count, [](const Lane& lane) -> const at::Tensor& { return lane.gradients; });
  const auto finish = [&](const Network& network, auto member, std::int64_t begin, std::int64_t end) {
    const at::Tensor& sum = (lanes[0].*member)->derived;
    if (!sum.defined()) return;
    sum_lanes(lanes, count, [&](const Lane& lane) -> const at::Tensor& { return (lane.*member)->derived; });
    network.finish_gradient(sum, gradients.narrow(0, begin, end - begin));
  };
  finish(*actor, &Lane::actor_grad, 0, critic_offset);
  if (critic) finish(*critic, &Lane::critic_grad, critic_offset, log_std_offset);
  for (std::int64_t l = 1; l < count; ++l)
    for (int k = 0; k < kNumLossSums; ++k)
      totals.mutable_data_ptr<double>()[k] +=
          lanes[static_cast<std::size_t>(l)].totals.const_data_ptr<double>()[k];
}

at::Tensor Policy::accumulate(const Batch& batch, const LossSettings& settings,
                              const std::function<bool()>& should_stop) {
  Impl& self = *impl_;
  if (batch.mask.size(0) == 0) {
    self.gradients.zero_();
    return self.totals.zero_();
  }
  const Blocks blocks = self.blocks_of(batch);
  auto& lanes = self.lanes(self.training, blocks, true);
  for (std::int64_t l = 0; l < blocks.lanes; ++l) {
    Lane& lane = lanes[static_cast<std::size_t>(l)];
    lane.gradients.zero_();
    lane.totals.zero_();
    for (const auto* network : {&lane.actor_grad, &lane.critic_grad})
      if (*network && (*network)->derived.defined()) (*network)->derived.zero_();
  }
  blocks.each([&](std::int64_t l, std::int64_t begin, std::int64_t end) {
    if (should_stop && should_stop()) return;
    heartbeat::beat();
    self.accumulate_block(lanes[static_cast<std::size_t>(l)], batch, settings, begin, end);
  });
  self.reduce_lanes(lanes, blocks.lanes);
  return self.totals;
}

}  // namespace wd
