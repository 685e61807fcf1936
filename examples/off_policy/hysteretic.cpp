// hysteretic.cpp: an off-policy algorithm of one's own: hysteretic Q-learning (Matignon, Laurent, Le
// Fort-Piat 2007; as a deep Q-network Omidshafiei et al. 2017, arXiv 1703.06182). Agents that learn side by
// side disturb each other: a bad return may be the fault of a teammate that still explores. So errors that
// lower a value count `slow` times as much as those that raise it. The replay memory, the target of
// Q-learning, the optimizer, sums over workers, checkpoints and metrics are those of the library; the loss is
// a kernel of this project.
//
//   off_policy --env cartpole --num_envs 4 --train_batch_size 16
//     --set 'policy={shared: {algorithm: HYSTERETIC, model: {separate_value: false}}}'
#include <wd/kernels/td.h>
#include <wd/policy_pass.h>
#include <wd/replay_algorithm.h>

#include "hysteretic_loss.h"

namespace {

struct HystereticSettings final : wd::OffPolicySettings {
  wd::Schedule epsilon;
  double slow = 0.4, tau = 0.01;

  HystereticSettings() {
    lr = 5e-4;
    epsilon.points = {{0.0, 1.0}, {10'000.0, 0.05}};
  }
  const char* name() const override { return "HYSTERETIC"; }
  std::unique_ptr<wd::AlgorithmSettings> copy() const override {
    return std::make_unique<HystereticSettings>(*this);
  }
  // The keys of a policy's section in YAML, with their ranges and help.
  void describe(wd::Fields& field) override {
    field("lr", lr, {0, 10}, "learning rate of Adam");
    field("epsilon", epsilon, {0, 1}, "probability that an agent draws its action from the legal choices");
    field("slow", slow, {0, 1}, "weight of errors that lower a value");
    field("gamma", gamma, {0, 1}, "discount per step");
    field("tau", tau, wd::above(0, 1), "how far the target network moves in each update");
    field("max_grad_norm", max_grad_norm, wd::above(0, 1e9), "limit of the norm of the gradient");
    replay.describe(field);
  }
  wd::AlgorithmTraits traits() const override {
    wd::AlgorithmTraits traits = OffPolicySettings::traits();
    traits.output = wd::PolicyOutput::kValues;
    traits.learns_quantiles = false;
    return traits;
  }
  std::vector<wd::OwnMetric> metrics() const override {
    return {{"negative_errors", "share of the transitions whose value was too high"}};
  }
  double bytes(const wd::WorkerShape& worker) const override {
    return OffPolicySettings::bytes(worker) + bytes_of_target(worker);
  }
  std::unique_ptr<wd::Algorithm> make(const wd::AlgorithmContext& context) const override;
};

class Hysteretic final : public wd::ReplayAlgorithm {
 public:
  Hysteretic(const wd::AlgorithmContext& context, const HystereticSettings& settings)
      : ReplayAlgorithm(
            context, settings,
            plan_of_policy(context, settings, {{nullptr, "the loss", "the value", "the target", nullptr}},
                           settings.epsilon)),
        settings_(settings),
        target_(policy_.model().like()),
        lanes_({{&policy_.model(), wd::ModelUse::kLearns}, {&target_, wd::ModelUse::kForward}},
               hysteretic::kNumSums,
               {{"target", 1}, {"output_grad", policy_.action_layout().columns(), true}}, device_) {}

  // What the next iteration depends on, for checkpoints.
  std::vector<wd::NamedTensor> state() const override {
    std::vector<wd::NamedTensor> all = ReplayAlgorithm::state();
    all.push_back({"target", target_.parameters()});
    return all;
  }
  void state_changed() override {
    ReplayAlgorithm::state_changed();
    target_.refresh_shadow();
  }
  void weights_changed() override { target_.follow(policy_.model(), 1.0f); }
  std::vector<std::pair<std::string, double>> metrics() const override {
    std::vector<std::pair<std::string, double>> all = optimizer_metrics();
    all.emplace_back("value_loss", mean_of_sum(hysteretic::kLoss));
    all.emplace_back("value_mean", mean_of_sum(hysteretic::kValue));
    all.emplace_back("negative_errors", mean_of_sum(hysteretic::kNegative));
    return all;
  }

 private:
  at::Tensor accumulate(const wd::ReplayBatch& batch, const std::function<bool()>& should_stop) override {
    return lanes_.run(
        policy_.blocks(batch.now),
        [&](wd::Lane& lane, std::int64_t begin, std::int64_t end) { pass(lane, batch, begin, end); },
        should_stop);
  }
  void after_update(std::int64_t) override {
    target_.follow(policy_.model(), static_cast<float>(settings_.tau));
  }
  void pass(wd::Lane& lane, const wd::ReplayBatch& batch, std::int64_t begin, std::int64_t end) const;

  const HystereticSettings& settings_;
  wd::Model target_;
  wd::Lanes lanes_;
};

// The gradient of rows [begin, end) of the batch, in the memory of one lane.
void Hysteretic::pass(wd::Lane& lane, const wd::ReplayBatch& batch, std::int64_t begin,
                      std::int64_t end) const {
  const wd::Queue queue = wd::current_queue(device_);
  const wd::ActionLayout& layout = policy_.action_layout();
  const wd::Network& target = target_.network(0);
  target.forward(policy_.input(batch.next, begin, end), lane.of(target));
  const auto values = wd::rows_of<const float>(lane.of(target).output);
  const wd::NextValues next{.layout = layout,
                            .select = values,
                            .value = values,
                            .legal = wd::legal_of(batch.next, begin),
                            .reward = wd::at_row<const float>(batch.reward, begin),
                            .discount = wd::at_row<const float>(batch.discount, begin),
                            .target = wd::rows_of<float>(lane.rows("target"))};
  wd::td_target(queue, {.rows = end - begin, .next = next});
  const wd::PolicyPass now = policy_.forward(lane, batch.now, begin, end);
  const at::Tensor& grad = lane.rows("output_grad");
  wd::hysteretic_loss(queue, {.rows = end - begin,
                              .layout = layout,
                              .slow = static_cast<float>(settings_.slow),
                              .output = now.computed.output,
                              .action = wd::at_row<const std::int32_t>(batch.now.action, begin),
                              .target = next.target.pointer,
                              .weight = wd::at_row<const float>(batch.weight, begin),
                              .output_grad = wd::rows_of<float>(grad),
                              .error = wd::at_row<float>(error_, begin),
                              .row_sums = wd::at_row<float>(lane.row_sums())});
  policy_.backward(lane, now, grad, {}, {});
}

std::unique_ptr<wd::Algorithm> HystereticSettings::make(const wd::AlgorithmContext& context) const {
  return std::make_unique<Hysteretic>(context, *this);
}

WD_REGISTER_ALGORITHM(HystereticSettings);

}  // namespace
