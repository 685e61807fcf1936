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
  args.scheduled = reinterpret_cast<const LossCoefficients*>(at_row<const float>(settings.scheduled));
  args.networks = pass.computed;
  args.action =
      static_cast<const std::int32_t*>(batch.action.const_data_ptr()) + begin * layout.action_width();
  args.action_mask = legal_of(batch, begin).pointer;
  args.old_log_prob = at_row<const float>(batch.log_prob, begin);
  args.old_value = at_row<const float>(batch.value, begin);
  args.advantage = at_row<const float>(batch.advantage, begin);
  args.advantage_norm = at_row<const float>(settings.advantage_norm);
  if (settings.policy_weight.defined()) args.policy_weight = at_row<const float>(settings.policy_weight);
  args.target = at_row<const float>(batch.target, begin);
  if (settings.value_norm.defined()) {
    const at::Tensor& old = settings.rollout_value_norm;
    args.value_norm = at_row<const float>(settings.value_norm);
    args.old_norm = old.defined() ? at_row<const float>(old) : args.value_norm;
    // The units may have changed since the rollout, whose outputs these activations contain.
    args.value_is_plain = batch.activations != nullptr;
    if (args.value_is_plain) args.networks.value = rows_of<const float>(batch.value, begin);
  }
  args.mask = at_row<const std::uint8_t>(batch.mask, begin);
  args.output_grad = rows_of<float>(lane.rows("output_grad"));
  args.value_grad = policy.has_critic() ? rows_of<float>(lane.rows("value_grad"))
                                        : args.output_grad.column(layout.columns());
  args.log_std_grad = rows_of<float>(lane.rows("log_std_grad"));
  args.row_sums = at_row<float>(lane.row_sums());
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
