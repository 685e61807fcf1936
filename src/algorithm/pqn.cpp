// pqn.cpp: parallelized Q-network (Gallici et al. 2024, arXiv 2407.04811). The replicas act epsilon-greedily
// on Q(s, a). A rollout's targets are the lambda-returns
//   G_t = r_t + gamma ((1 - lambda) max_a Q(s_{t+1}, a) + lambda G_{t+1}),
// computed backwards from max_a Q of its last observation, with Q as it was when it acted. The maximum is
// over legal choices; it is 0 after a termination, and replaces G_{t+1} at a truncation. Then epochs of
// gradient descent over minibatches on (Q(s_t, a_t) - G_t)^2 / 2. As values are max_a Q, G is the
// advantage of generalized advantage estimation plus the value. Differences from the paper's code: Adam
// in place of RAdam; each of several heads takes its best choice, and Q is the sum over heads.
#include <ATen/ATen.h>

#include <array>
#include <cmath>

#include "kernels/normalize.h"
#include "kernels/normalize_body.h"
#include "kernels/q_loss.h"
#include "kernels/reduce.h"
#include "src/algorithm/algorithm.h"
#include "src/algorithm/coefficients.h"
#include "src/algorithm/learned.h"
#include "src/algorithm/rollouts.h"
#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "src/policy/pass.h"
#include "src/rollout/minibatches.h"
#include "wd/error.h"

namespace wd {

namespace {

SumNames q_sums() { return {.names = {nullptr, "the loss of the values", "the value"}}; }

class Pqn final : public Algorithm {
 public:
  Pqn(const AlgorithmContext& context, const PqnSettings& settings);

  void begin_rollout(const TrainingClock& clock) override { exploration_.update(clock); }
  const float* epsilon() const override { return exploration_.rounded().const_data_ptr<float>(); }

  void begin_prepare() override;
  void end_prepare() override { std::exchange(sum_arrives_, {})(); }
  void begin_update(const TrainingClock& clock) override;
  bool is_done() const override { return done_; }
  void begin_step(const TrainingClock& clock, const std::function<bool()>& should_stop) override;
  bool end_step() override;

  void set_skip_flag(const std::int64_t* failed) override { failed_ = failed; }
  void check() const override { learned_.check(); }
  std::vector<NamedTensor> optimizer() const override { return learned_.state(); }
  std::vector<std::pair<std::string, double>> metrics() const override;
  void poison_next(const std::string& tensor) override { learned_.poison_next(tensor); }

 private:
  enum Coefficient { kLr, kMaxGradNorm };

  at::Tensor gradient(const Batch& batch, const std::function<bool()>& should_stop);
  void moments_of(const at::Tensor& x, std::int64_t place);
  std::pair<double, double> statistics(std::int64_t place) const;  // mean and variance

  Policy& policy_;
  const Trajectory& trajectory_;
  const PolicyBuffers& buffers_;
  const PqnSettings& settings_;
  bool to_train_;
  std::uint64_t seed_;
  ProcessGroup group_;
  Device device_;
  Lanes lanes_;
  Learned learned_;
  Minibatches minibatches_;
  Coefficients coefficients_, exploration_;
  at::Tensor partial_;                    // working memory of reductions, float64
  at::Tensor moments_;                    // [3, kNumMoments] float64: of targets, values, differences
  const std::int64_t* failed_ = nullptr;  // in device memory: not 0 if nothing may be learned; may be null
  std::function<void()> sum_arrives_;     // waits for the moments whose sum was begun
  int epoch_ = 0, minibatch_ = 0;         // of the current update: the next to begin
  bool done_ = true;                      // no step is left to begin
};

Pqn::Pqn(const AlgorithmContext& context, const PqnSettings& settings)
    : policy_(context.policy),
      trajectory_(context.trajectory),
      buffers_(context.buffers()),
      settings_(settings),
      to_train_(context.to_train),
      seed_(context.seed),
      group_(context.group),
      device_(device_holding(buffers_.value)),
      lanes_({{&policy_.model(), ModelUse::kLearns}}, kNumQSums,
             {{"output_grad", policy_.model().network(0).outputs(), true}}, device_),
      learned_(policy_.model(), q_sums(), settings.adam_epsilon, group_,
               concat("policy '", policy_.name(), "'"), policy_.named_parameters()),
      minibatches_(buffers_, trajectory_.steps(), trajectory_.num_envs(), settings.num_minibatches,
                   group_.rank(), policy_.sequences(trajectory_.steps())),
      coefficients_(std::array{&std::as_const(settings.lr), &std::as_const(settings.max_grad_norm)}, device_),
      exploration_(std::array{&std::as_const(settings.epsilon)}, device_) {
  const auto doubles = buffers_.value.options().dtype(at::kDouble);
  partial_ = at::zeros({kNumMoments * num_chunks(buffers_.mask.numel())}, doubles);
  moments_ = at::zeros({3, kNumMoments}, doubles);
}

void Pqn::moments_of(const at::Tensor& x, std::int64_t place) {
  masked_moments(current_queue(device_), x.const_data_ptr<float>(),
                 buffers_.mask.const_data_ptr<std::uint8_t>(), buffers_.mask.numel(),
                 partial_.mutable_data_ptr<double>(),
                 moments_.mutable_data_ptr<double>() + place * kNumMoments);
}

void Pqn::begin_prepare() {
  ReturnsArgs args = returns_of(trajectory_, buffers_);
  args.method = ReturnMethod::kGae;
  args.gamma = static_cast<float>(settings_.gamma);
  args.lambda = static_cast<float>(settings_.lambda);
  args.reward_scale = static_cast<float>(settings_.reward_scale);
  returns(current_queue(device_), args);
  moments_of(buffers_.target, 0);
  moments_of(buffers_.value, 1);
  moments_of(buffers_.advantage, 2);
  sum_arrives_ = group_.begin_all_reduce(moments_);
}

void Pqn::begin_update(const TrainingClock& clock) {
  coefficients_.update(clock);
  learned_.begin_update(coefficients_.value(kLr),
                        settings_.clip_grad_norm ? coefficients_.value(kMaxGradNorm) : nullptr, nullptr,
                        failed_);
  epoch_ = minibatch_ = 0;
  done_ = !to_train_;
}

// The gradient of the loss summed over the batch; returns its sums by QSum.
at::Tensor Pqn::gradient(const Batch& batch, const std::function<bool()>& should_stop) {
  const Queue queue = current_queue(device_);
  const ActionLayout& layout = policy_.action_layout();
  return lanes_.run(
      policy_.blocks(batch),
      [&](Lane& lane, std::int64_t begin, std::int64_t end) {
        const PolicyPass pass = policy_.forward(lane, batch, begin, end);
        const at::Tensor& output_grad = lane.rows("output_grad");
        QLossArgs args;
        args.rows = pass.rows;
        args.layout = layout;
        args.output = pass.output;
        args.output_stride = pass.output_stride;
        args.action = batch.action.const_data_ptr<std::int32_t>() + begin * layout.action_width();
        args.target = batch.target.const_data_ptr<float>() + begin;
        args.mask = batch.mask.const_data_ptr<std::uint8_t>() + begin;
        args.output_grad = output_grad.mutable_data_ptr<float>();
        args.grad_stride = static_cast<int>(output_grad.stride(0));
        args.row_sums = lane.row_sums().mutable_data_ptr<float>();
        q_loss(queue, args);
        policy_.backward(lane, pass, output_grad, {}, {});
      },
      should_stop);
}

void Pqn::begin_step(const TrainingClock& clock, const std::function<bool()>& should_stop) {
  if (minibatch_ == 0) minibatches_.shuffle(seed_, clock.time(), epoch_);
  const at::Tensor totals = gradient(minibatches_.gather(minibatch_), should_stop);
  learned_.begin_step(totals, should_stop ? std::optional(should_stop()) : std::nullopt);
  minibatch_ = (minibatch_ + 1) % minibatches_.count();
  if (minibatch_ == 0) ++epoch_;
  done_ = epoch_ == settings_.num_epochs;
}

bool Pqn::end_step() {
  if (!learned_.end_step()) return false;
  done_ = done_ || learned_.is_stopped();
  return true;
}

std::pair<double, double> Pqn::statistics(std::int64_t place) const {
  const at::Tensor host = moments_[place].cpu();
  return {mean_of(host.const_data_ptr<double>()), variance_of(host.const_data_ptr<double>())};
}

std::vector<std::pair<std::string, double>> Pqn::metrics() const {
  const StepRecord record = learned_.record();
  const std::vector<double> sums = learned_.sums();
  // NaN, nothing measured, if no transition was learned from.
  const auto ratio = [](double sum, double count) { return count > 0.0 ? sum / count : std::nan(""); };
  const auto [target, target_variance] = statistics(0);
  const double unexplained = statistics(2).second, loss = ratio(sums[kQLoss], sums[kQCount]);
  return {{"total_loss", loss},
          {"value_loss", loss},
          {"value_mean", statistics(1).first},
          {"return_mean", target},
          {"return_std", std::sqrt(target_variance)},
          {"explained_variance", target_variance > 0.0 ? 1.0 - unexplained / target_variance : std::nan("")},
          {"grad_norm", ratio(record.norm_sum, record.steps)},
          {"epsilon", exploration_.value().cpu()[0].item<double>()},
          {"learning_rate", coefficients_.value().cpu()[kLr].item<double>()},
          {"updates", record.steps},
          {"empty_minibatches", record.empty}};
}

}  // namespace

void PqnSettings::describe(Fields& field) {
  field("lr", lr, {0, 10}, "learning rate of Adam");
  field("epsilon", epsilon, {0, 1}, "probability that an agent draws its action from the legal choices");
  field("gamma", gamma, {0, 1}, "discount per step");
  field("lambda", lambda, {0, 1}, "of the lambda-returns; 0: one step, 1: the whole rollout's return");
  field("reward_scale", reward_scale, above(0, 1e9), "rewards are multiplied by it before learning");
  field("num_epochs", num_epochs, {1, 1000}, "passes over each rollout");
  field("num_minibatches", num_minibatches, {1, 65'536}, "optimizer steps per pass");
  field("clip_grad_norm", clip_grad_norm, "limit the norm of the gradient");
  field("max_grad_norm", max_grad_norm, above(0, 1e9), "that limit");
  field("adam_epsilon", adam_epsilon, above(0, 1), "added to Adam's denominator");
}

void PqnSettings::check(const TrainingShape& shape, const Problem& problem) const {
  check_minibatches(num_minibatches, shape, problem);
}

std::int64_t PqnSettings::wanted_rollout(std::int64_t time_limit) const {
  return horizons(1.0 / (1.0 - gamma * lambda), time_limit);
}

std::unique_ptr<Algorithm> PqnSettings::make(const AlgorithmContext& context) const {
  require_minibatches(num_minibatches, context, name());
  return std::make_unique<Pqn>(context, *this);
}

}  // namespace wd
