// group.cpp: an algorithm of one's own. GROUP learns without a value function: the advantage of a step is
// its discounted return within the rollout, compared with those of all other replicas in the same step of the
// rollout, in their standard deviations. The gradient of the policy, the steps of the optimizer, the sums
// over workers, checkpoints and metrics are those of the library.
//
//   custom_algorithm --env cartpole --set 'policy={shared: {algorithm: GROUP}}'
#include <ATen/ATen.h>
#include <wd/coefficients.h>
#include <wd/policy_gradient.h>
#include <wd/rollout_algorithm.h>

#include <array>

namespace {

struct GroupSettings final : wd::AlgorithmSettings {
  wd::Schedule lr = 1e-3;
  wd::Schedule max_grad_norm = 0.5;
  double gamma = 0.99;
  double clip_param = 0.2;
  double entropy_coeff = 0.0;
  int num_epochs = 4, num_minibatches = 4;

  const char* name() const override { return "GROUP"; }
  std::unique_ptr<wd::AlgorithmSettings> copy() const override {
    return std::make_unique<GroupSettings>(*this);
  }
  // The keys of a policy's section in YAML, with their ranges and help.
  void describe(wd::Fields& field) override {
    field("lr", lr, {0, 10}, "learning rate of Adam");
    field("max_grad_norm", max_grad_norm, wd::above(0, 1e9), "limit of the norm of the gradient");
    field("gamma", gamma, {0, 1}, "discount per step");
    field("clip_param", clip_param, wd::above(0, 10), "limit of the probability ratio, as in PPO");
    field("entropy_coeff", entropy_coeff, {0, 1e6}, "weight of the entropy bonus");
    field("num_epochs", num_epochs, {1, 1000}, "passes over each rollout");
    field("num_minibatches", num_minibatches, {1, 65'536}, "optimizer steps per pass");
  }
  void check(const wd::TrainingShape& shape, const Problem& problem) const override {
    wd::check_minibatches(num_minibatches, shape, problem);
  }
  wd::Schedule& learning_rate() override { return lr; }
  wd::AlgorithmTraits traits() const override {
    return {.epochs = num_epochs, .minibatches = num_minibatches};
  }
  std::int64_t wanted_rollout(std::int64_t time_limit) const override {
    return wd::horizons(1.0 / (1.0 - gamma), time_limit);
  }
  std::unique_ptr<wd::Algorithm> make(const wd::AlgorithmContext& context) const override;
};

class Group final : public wd::RolloutAlgorithm {
 public:
  Group(const wd::AlgorithmContext& context, const GroupSettings& settings)
      : RolloutAlgorithm(context, settings, wd::PolicyGradient::sums(), 1e-8),
        settings_(settings),
        gradient_(policy_),
        schedules_(std::array{&std::as_const(settings.lr), &std::as_const(settings.max_grad_norm)}, device_) {
  }

  bool wants_values() const override { return false; }
  void begin_prepare() override;
  void begin_update(const wd::TrainingClock& clock) override {
    schedules_.update(clock);
    start_epochs(schedules_.value(0), schedules_.value(1), nullptr);
  }
  std::vector<std::pair<std::string, double>> metrics() const override;

 private:
  // The gradient of PPO's clipped surrogate, without a value function, over a minibatch.
  at::Tensor accumulate(const wd::Batch& batch, const std::function<bool()>& should_stop) override {
    wd::LossSettings loss;
    loss.ppo = true;
    loss.clip = static_cast<float>(settings_.clip_param);
    loss.with_value = false;
    loss.entropy_coeff = static_cast<float>(settings_.entropy_coeff);
    return gradient_.accumulate(batch, loss, should_stop);
  }

  const GroupSettings& settings_;
  wd::PolicyGradient gradient_;
  wd::Coefficients schedules_;  // lr, max_grad_norm
};

// Writes the advantages [T, E, A]. These operations of torch allocate; where every microsecond counts, a
// kernel of one's own takes their place.
void Group::begin_prepare() {
  const at::Tensor ends = at::logical_or(trajectory_.terminated(), trajectory_.truncated()),
                   goes_on = at::logical_not(ends.unsqueeze(2).logical_or(buffers_.agent_terminated));
  at::Tensor value = at::zeros_like(buffers_.reward[0]);
  for (int t = trajectory_.steps() - 1; t >= 0; --t) {
    value = buffers_.reward[t] + settings_.gamma * goes_on[t] * value;
    buffers_.target[t].copy_(value);
  }
  // Count, sum and sum of squares of each step's returns, over the replicas of all workers.
  const at::Tensor mask = buffers_.mask.to(at::kFloat), returns = buffers_.target * mask;
  const at::Tensor moments = at::stack({mask.sum({1, 2}), returns.sum({1, 2}), returns.square().sum({1, 2})});
  group_.all_reduce(moments);
  const at::Tensor count = moments[0].clamp_min(1), mean = moments[1] / count,
                   deviation = (moments[2] / count - mean.square()).clamp_min(0).sqrt() + 1e-4;
  buffers_.advantage.copy_((buffers_.target - mean.view({-1, 1, 1})) / deviation.view({-1, 1, 1}) * mask);
}

std::vector<std::pair<std::string, double>> Group::metrics() const {
  const std::vector<double> sums = learned_.sums();
  std::vector<std::pair<std::string, double>> all = optimizer_metrics();
  all.emplace_back("policy_loss", wd::ratio(sums[wd::kPolicyLoss], sums[wd::kCount]));
  all.emplace_back("entropy", wd::ratio(sums[wd::kEntropy], sums[wd::kCount]));
  all.emplace_back("learning_rate", schedules_.value().cpu()[0].item<double>());
  return all;
}

std::unique_ptr<wd::Algorithm> GroupSettings::make(const wd::AlgorithmContext& context) const {
  wd::require_minibatches(num_minibatches, context, name());
  return std::make_unique<Group>(context, *this);
}

WD_REGISTER_ALGORITHM(GroupSettings);

}  // namespace
