// policy_gradient.cpp: the pass of one block: outputs, loss, gradient.
#include "wd/policy_gradient.h"

#include "kernels/loss.h"
#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "wd/policy_pass.h"

namespace wd {

struct PolicyGradient::Impl {
  const Policy& policy;
  Device device;
  Lanes lanes;

  explicit Impl(const Policy& of)
      : policy(of),
        device(device_holding(of.parameters())),
        lanes({{&of.model(), ModelUse::kLearns}}, kNumLossSums,
              {{"output_grad", of.model().network(0).outputs(), true},
               {"value_grad", 1},
               {"log_std_grad", of.action_layout().components}},
              device) {}
  LossArgs loss_args(const Lane& lane, const PolicyPass& pass, const Batch& batch,
                     const LossSettings& settings, std::int64_t begin) const;
};

LossArgs PolicyGradient::Impl::loss_args(const Lane& lane, const PolicyPass& pass, const Batch& batch,
                                         const LossSettings& settings, std::int64_t begin) const {
  const ActionLayout& layout = policy.action_layout();
  LossArgs args;
  args.rows = pass.rows;
  args.layout = layout;
  args.ppo = settings.ppo;
  args.with_value = settings.with_value;
  args.fixed = {settings.clip, settings.value_clip, settings.value_coeff, settings.entropy_coeff};
  if (settings.scheduled.defined())
    args.scheduled = reinterpret_cast<const LossCoefficients*>(settings.scheduled.const_data_ptr<float>());
  args.output = pass.output;
  args.output_stride = pass.output_stride;
  if (pass.latent.defined()) {
    args.latent = pass.latent.const_data_ptr<float>();
    args.latent_stride = pass.latent.stride(0);
  }
  args.value = pass.value;
  args.value_stride = pass.value_stride;
  args.action =
      static_cast<const std::int32_t*>(batch.action.const_data_ptr()) + begin * layout.action_width();
  args.action_mask = legal_of(batch, begin);
  args.old_log_prob = batch.log_prob.const_data_ptr<float>() + begin;
  args.old_value = batch.value.const_data_ptr<float>() + begin;
  args.advantage = batch.advantage.const_data_ptr<float>() + begin;
  if (settings.advantage_norm.defined())
    args.advantage_norm = settings.advantage_norm.const_data_ptr<float>();
  args.target = batch.target.const_data_ptr<float>() + begin;
  if (settings.value_norm.defined()) {
    args.value_norm = settings.value_norm.const_data_ptr<float>();
    const at::Tensor& old = settings.rollout_value_norm;
    args.old_norm = old.defined() ? old.const_data_ptr<float>() : args.value_norm;
    // The units may have changed since the rollout, whose outputs these activations contain.
    args.value_is_plain = batch.activations != nullptr;
    if (args.value_is_plain) args.value = args.old_value;
    if (args.value_is_plain) args.value_stride = 1;
  }
  args.mask = batch.mask.const_data_ptr<std::uint8_t>() + begin;
  const at::Tensor& output_grad = lane.rows("output_grad");
  args.output_grad = output_grad.mutable_data_ptr<float>();
  args.grad_stride = static_cast<int>(output_grad.stride(0));
  args.value_grad = policy.has_critic() ? lane.rows("value_grad").mutable_data_ptr<float>()
                                        : args.output_grad + layout.columns();
  args.value_grad_stride = policy.has_critic() ? 1 : args.grad_stride;
  args.log_std_grad = lane.rows("log_std_grad").mutable_data_ptr<float>();
  args.row_sums = lane.row_sums().mutable_data_ptr<float>();
  return args;
}

SumNames PolicyGradient::sums() {
  SumNames sums{.names = std::vector<const char*>(kNumLossSums), .limited = kApproxKl};
  sums.names[kPolicyLoss] = "the policy loss";
  sums.names[kValueLoss] = "the value loss";
  sums.names[kEntropy] = "the entropy";
  return sums;
}

PolicyGradient::PolicyGradient(const Policy& policy) : impl_(std::make_unique<Impl>(policy)) {}
PolicyGradient::~PolicyGradient() = default;
PolicyGradient::PolicyGradient(PolicyGradient&&) noexcept = default;

at::Tensor PolicyGradient::accumulate(const Batch& batch, const LossSettings& settings,
                                      const std::function<bool()>& should_stop) {
  Impl& self = *impl_;
  const Queue queue = current_queue(self.device);
  return self.lanes.run(
      self.policy.blocks(batch),
      [&](Lane& lane, std::int64_t begin, std::int64_t end) {
        const PolicyPass pass = self.policy.forward(lane, batch, begin, end);
        loss(queue, self.loss_args(lane, pass, batch, settings, begin));
        self.policy.backward(lane, pass, lane.rows("output_grad"), lane.rows("value_grad"),
                             lane.rows("log_std_grad"));
      },
      should_stop);
}

}  // namespace wd
