// baseline.cpp: an algorithm of one's own: policy gradients with a linear value of the state, which torch's
// autograd learns. It breaks one selectable rule; `check --algorithm BASELINE` must find out.
#include <ATen/ATen.h>
#include <wd/autograd.h>
#include <wd/coefficients.h>
#include <wd/policy_gradient.h>
#include <wd/rollout_algorithm.h>

#include <array>
#include <optional>

namespace {

enum Fault : int { kNone, kState, kSum, kAutograd, kIdle };

struct BaselineSettings final : wd::AlgorithmSettings {
  wd::Schedule lr = 1e-3;
  wd::Schedule max_grad_norm = 0.5;
  Fault fault = kNone;

  const char* name() const override { return "BASELINE"; }
  std::unique_ptr<wd::AlgorithmSettings> copy() const override {
    return std::make_unique<BaselineSettings>(*this);
  }
  void describe(wd::Fields& field) override {
    field("lr", lr, {0, 10}, "learning rate");
    field("max_grad_norm", max_grad_norm, wd::above(0, 1e9), "limit of the norm of the gradient");
    field.choice("fault", fault, {"none", "state", "sum", "autograd", "idle"}, "the rule that is broken");
  }
  wd::Schedule& learning_rate() override { return lr; }
  std::int64_t wanted_rollout(std::int64_t time_limit) const override {
    return wd::horizons(100.0, time_limit);
  }
  std::unique_ptr<wd::Algorithm> make(const wd::AlgorithmContext& context) const override;
};

class Baseline final : public wd::RolloutAlgorithm {
 public:
  Baseline(const wd::AlgorithmContext& context, const BaselineSettings& settings)
      : RolloutAlgorithm(context, settings, wd::PolicyGradient::sums(), 1e-3),
        fault_(settings.fault),
        gradient_(policy_),
        schedules_(std::array{&std::as_const(settings.lr), &std::as_const(settings.max_grad_norm)}, device_),
        weight_(at::zeros({buffers_.observation_size})) {
    weight_.requires_grad_();
  }

  bool wants_values() const override { return false; }
  void begin_prepare() override {
    const at::Tensor ends = at::logical_or(trajectory_.terminated(), trajectory_.truncated()),
                     goes_on = at::logical_not(ends.unsqueeze(2).logical_or(buffers_.agent_terminated));
    at::Tensor value = at::zeros_like(buffers_.reward[0]);
    const int steps = trajectory_.steps();
    for (int t = steps - 1; t >= 0; --t) {
      value = buffers_.reward[t] + 0.98 * goes_on[t] * value;
      buffers_.target[t].copy_(value);
    }
    const at::Tensor mask = buffers_.mask.to(at::kFloat),
                     seen =
                         buffers_.observation.slice(0, 0, steps).slice(3, 0, weight_.size(0)).to(at::kFloat);
    at::Tensor values;
    {
      std::optional<wd::WithAutograd> autograd;
      if (fault_ != kAutograd) autograd.emplace();
      values = at::matmul(seen, weight_);
      ((values - buffers_.target).square() * mask).sum().backward();
      values = values.detach();
    }
    const at::Tensor sums = at::cat({weight_.grad(), mask.sum().unsqueeze(0)});
    if (fault_ != kSum) group_.all_reduce(sums);
    weight_.detach().sub_(sums.slice(0, 0, -1) / sums[-1], 0.1);
    weight_.mutable_grad().reset();
    buffers_.advantage.copy_((buffers_.target - values) * mask);
  }
  void begin_update(const wd::TrainingClock& clock) override {
    schedules_.update(clock);
    start_epochs(schedules_.value(0), schedules_.value(1), nullptr);
  }
  bool is_done() const override { return fault_ == kIdle || RolloutAlgorithm::is_done(); }
  std::vector<wd::NamedTensor> state() const override {
    std::vector<wd::NamedTensor> all = RolloutAlgorithm::state();
    if (fault_ != kState) all.push_back({"baseline", weight_.detach()});
    return all;
  }
  std::vector<std::pair<std::string, double>> metrics() const override { return optimizer_metrics(); }

 private:
  at::Tensor accumulate(const wd::Batch& batch, const std::function<bool()>& should_stop) override {
    wd::LossSettings loss;
    loss.with_value = false;
    return gradient_.accumulate(batch, loss, should_stop);
  }

  const Fault fault_;
  wd::PolicyGradient gradient_;
  wd::Coefficients schedules_;  // lr, max_grad_norm
  at::Tensor weight_;           // of each entry of the observation, for the value of the state
};

std::unique_ptr<wd::Algorithm> BaselineSettings::make(const wd::AlgorithmContext& context) const {
  return std::make_unique<Baseline>(context, *this);
}

WD_REGISTER_ALGORITHM(BaselineSettings);

}  // namespace
