// dqn.cpp: deep Q-network (Mnih et al. 2015). The replicas act epsilon-greedily on Q(s, a); what they play
// goes to a replay memory, from which every update draws a batch. The target of a transition is
//   r_t + ... + gamma^{n-1} r_{t+n-1} + gamma^n Q'(s_{t+n}, a*),
// where Q' is the target network, a copy of Q that follows it now and then, and a* the best legal action by Q
// (double Q-learning, van Hasselt et al. 2016, arXiv 1509.06461) or by Q'. It ends with the episode: at a
// termination there is no value, at a truncation that of the last observation. The loss is Huber's of the
// error, weighted if the draw was prioritized, and, with cql_alpha, the penalty of conservative Q-learning
// (kernels/td.h). Differences from the paper: Adam, double Q-learning and a rollout of many replicas at a
// time; each of several heads takes its best choice, and Q is the sum over heads.
#include <ATen/ATen.h>

#include <array>
#include <string>
#include <utility>

#include "kernels/td.h"
#include "src/device/device.h"
#include "src/nets/values.h"
#include "wd/algorithms.h"
#include "wd/coefficients.h"
#include "wd/error.h"
#include "wd/learned.h"
#include "wd/policy_pass.h"
#include "wd/replay.h"
#include "wd/rollout_algorithm.h"

namespace wd {

namespace {

SumNames td_sums() { return {.names = {nullptr, "the loss of the values", "the value", "the target"}}; }

class Dqn final : public Algorithm {
 public:
  Dqn(const AlgorithmContext& context, const DqnSettings& settings);

  int stage(std::int64_t iteration) const override;
  void enter(int stage) override { stage_ = stage; }
  bool can_be_undone() const override { return false; }  // the ring is not copied before an iteration
  bool wants_values() const override { return false; }
  void begin_rollout(const TrainingClock& clock) override { epsilon_.update(clock); }
  const float* exploration() const override { return epsilon_.rounded().const_data_ptr<float>(); }
  void begin_prepare() override {}
  void begin_update(const TrainingClock& clock) override;
  bool is_done() const override { return left_ == 0; }
  void begin_step(const TrainingClock& clock, const std::function<bool()>& should_stop) override;
  bool end_step() override;
  void set_skip_flag(const std::int64_t* failed) override { failed_ = failed; }
  void check() const override { learned_.check(); }
  std::vector<NamedTensor> state() const override;
  void state_changed() override;
  void weights_changed() override { target_.follow(policy_.model(), 1.0f); }
  std::vector<NamedTensor> memory(std::int64_t iteration) const override { return replay_.memory(iteration); }
  std::string memory_fault(std::int64_t iteration) const override { return replay_.memory_fault(iteration); }
  void memory_changed() override { replay_.memory_changed(); }
  void forget(std::int64_t iteration) override { replay_.forget(iteration); }
  std::vector<std::pair<std::string, double>> metrics() const override;
  void poison_next(const std::string& tensor) override { learned_.poison_next(tensor); }

 private:
  enum Stage { kFill, kLearn, kLearnAndFollow };
  enum Coefficient { kLr, kMaxGradNorm, kImportance };

  bool follows_before(std::int64_t update) const;
  at::Tensor accumulate(const ReplayBatch& batch, const std::function<bool()>& should_stop);
  at::Tensor values(const Network& network, const Lane& lane) const;
  void pass(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const;

  const DqnSettings& settings_;
  Policy& policy_;
  Device device_;
  const bool to_train_;
  Learned learned_;
  Model target_;
  Replay replay_;
  Lanes lanes_;
  Coefficients coefficients_, epsilon_;
  const int quantiles_;                   // K of the network's values: 1, or as many as model.quantiles says
  at::Tensor error_;                      // [rows of a batch] float32: for priorities
  const std::int64_t batch_steps_;        // environment steps of an iteration
  const std::int64_t updates_;            // of an iteration that learns
  const std::int64_t* failed_ = nullptr;  // in device memory: not 0 if nothing may be learned; may be null
  int stage_ = kFill;
  std::int64_t left_ = 0;  // updates that are left to begin in this iteration
};

// How many numbers a network gives for the value of a choice.
int quantiles_of(const Policy& policy) {
  const ValuesNetwork* const network = ValuesNetwork::of(policy.model().network(0));
  return network == nullptr ? 1 : network->num_quantiles();
}

Dqn::Dqn(const AlgorithmContext& context, const DqnSettings& settings)
    : settings_(settings),
      policy_(context.policy()),
      device_(policy_.device()),
      to_train_(context.to_train),
      learned_(policy_.model(), td_sums(), settings.adam_epsilon, context.group,
               concat("policy '", policy_.name(), "'"), policy_.named_parameters()),
      target_(policy_.model().like()),
      replay_(context, settings.replay, settings.gamma, settings.reward_scale),
      lanes_({{&policy_.model(), ModelUse::kLearns}, {&target_, ModelUse::kForward}}, kNumTdSums,
             {{"target", quantiles_of(policy_)},
              {"output_grad", policy_.action_layout().columns() * quantiles_of(policy_), true}},
             device_),
      coefficients_(std::array{&std::as_const(settings.lr), &std::as_const(settings.max_grad_norm),
                               &std::as_const(settings.replay.importance_exponent)},
                    device_),
      epsilon_(std::array{&std::as_const(settings.epsilon)}, device_),
      quantiles_(quantiles_of(policy_)),
      error_(at::zeros({replay_.rows()}, policy_.parameters().options())),
      batch_steps_(replay_.shape().batch()),
      updates_(replay_.batches()) {}

int Dqn::stage(std::int64_t iteration) const {
  if (!to_train_ || !replay_.learns(iteration)) return kFill;
  const std::int64_t every = settings_.target_every, before = iteration * batch_steps_;
  return before / every < (before + batch_steps_) / every ? kLearnAndFollow : kLearn;
}

// Whether the target moves before this update, from 0. If it moves more than once per iteration, the updates
// share its environment steps.
bool Dqn::follows_before(std::int64_t update) const {
  if (stage_ != kLearnAndFollow) return false;
  const auto moves = [&](std::int64_t k) { return k * batch_steps_ / (updates_ * settings_.target_every); };
  return update == 0 || moves(update - 1) < moves(update);
}

void Dqn::begin_update(const TrainingClock& clock) {
  coefficients_.update(clock);
  if (to_train_) replay_.append(clock);
  learned_.begin_update(coefficients_.value(kLr),
                        settings_.clip_grad_norm ? coefficients_.value(kMaxGradNorm) : nullptr, nullptr,
                        failed_);
  left_ = stage_ == kFill ? 0 : updates_;
}

void Dqn::begin_step(const TrainingClock& clock, const std::function<bool()>& should_stop) {
  const std::int64_t update = updates_ - left_--;
  if (follows_before(update)) target_.follow(policy_.model(), static_cast<float>(settings_.tau));
  const ReplayBatch& batch = replay_.draw(clock, static_cast<int>(update),
                                          coefficients_.rounded().const_data_ptr<float>() + kImportance);
  const at::Tensor totals = accumulate(batch, should_stop);
  replay_.set_priorities(clock, error_);
  learned_.begin_step(totals, should_stop ? std::optional(should_stop()) : std::nullopt);
}

bool Dqn::end_step() {
  if (!learned_.end_step()) return false;
  if (learned_.is_stopped()) left_ = 0;
  return true;
}

// Returns the sums by TdSum.
at::Tensor Dqn::accumulate(const ReplayBatch& batch, const std::function<bool()>& should_stop) {
  return lanes_.run(
      policy_.blocks(batch.now),
      [&](Lane& lane, std::int64_t begin, std::int64_t end) { pass(lane, batch, begin, end); }, should_stop);
}

// The values of all choices, [rows, choices], or their quantiles, [rows, choices, K]; the network's last pass
// in this lane.
at::Tensor Dqn::values(const Network& network, const Lane& lane) const {
  const Network::Workspace& workspace = lane.of(network);
  return quantiles_ == 1 ? workspace.output : ValuesNetwork::of(network)->quantiles(workspace);
}

void Dqn::pass(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const {
  const Queue queue = current_queue(device_);
  const ActionLayout& layout = policy_.action_layout();
  const Network &online = policy_.model().network(0), &target = target_.network(0);
  const NetworkInput next = policy_.input(batch.next, begin, end);
  target.forward(next, lane.of(target));
  if (settings_.double_q) online.forward(next, lane.of(online));
  const at::Tensor& select = lane.of(settings_.double_q ? online : target).output;
  const at::Tensor value = values(target, lane);
  TdTargetArgs targets;
  targets.rows = end - begin;
  targets.layout = layout;
  targets.quantiles = quantiles_;
  targets.select = select.const_data_ptr<float>();
  targets.select_stride = select.stride(0);
  targets.value = value.const_data_ptr<float>();
  targets.value_stride = value.stride(0);
  targets.legal = legal_of(batch.next, begin);
  targets.reward = batch.reward.const_data_ptr<float>() + begin;
  targets.discount = batch.discount.const_data_ptr<float>() + begin;
  targets.target = lane.rows("target").mutable_data_ptr<float>();
  td_target(queue, targets);

  const PolicyPass now = policy_.forward(lane, batch.now, begin, end);
  const at::Tensor& output_grad = lane.rows("output_grad");
  TdLossArgs loss;
  loss.rows = end - begin;
  loss.layout = layout;
  loss.quantiles = quantiles_;
  const at::Tensor now_values = values(online, lane);
  loss.output = now_values.const_data_ptr<float>();
  loss.output_stride = now_values.stride(0);
  loss.action = batch.now.action.const_data_ptr<std::int32_t>() + begin * layout.action_width();
  loss.target = targets.target;
  loss.weight = batch.weight.const_data_ptr<float>() + begin;
  loss.huber = static_cast<float>(settings_.huber);
  loss.cql = static_cast<float>(settings_.cql_alpha);
  loss.legal = legal_of(batch.now, begin);
  loss.output_grad = output_grad.mutable_data_ptr<float>();
  loss.grad_stride = output_grad.stride(0);
  loss.error = error_.mutable_data_ptr<float>() + begin;
  loss.row_sums = lane.row_sums().mutable_data_ptr<float>();
  td_loss(queue, loss);
  if (quantiles_ == 1) return policy_.backward(lane, now, output_grad, {}, {});
  const at::Tensor z_grad =
      output_grad.narrow(0, 0, end - begin).unflatten(1, {layout.columns(), quantiles_});
  ValuesNetwork::of(online)->backward_quantiles(now.actor_input, z_grad, *now.actor, lane.gradient(online));
}

std::vector<NamedTensor> Dqn::state() const {
  std::vector<NamedTensor> all = learned_.state();
  all.push_back({"target", target_.parameters()});
  for (NamedTensor& named : replay_.state()) all.push_back(std::move(named));
  return all;
}

void Dqn::state_changed() {
  target_.refresh_shadow();
  replay_.state_changed();
}

std::vector<std::pair<std::string, double>> Dqn::metrics() const {
  const StepRecord record = learned_.record();
  const std::vector<double> sums = learned_.sums();
  const double loss = ratio(sums[kTdLoss], sums[kTdCount]);
  return {{"total_loss", loss},
          {"value_loss", loss},
          {"value_mean", ratio(sums[kTdValue], sums[kTdCount])},
          {"return_mean", ratio(sums[kTdTarget], sums[kTdCount])},
          {"grad_norm", ratio(record.norm_sum, record.steps)},
          {"epsilon", epsilon_.value().cpu()[0].item<double>()},
          {"learning_rate", coefficients_.value().cpu()[kLr].item<double>()},
          {"updates", record.steps},
          {"empty_minibatches", record.empty}};
}

}  // namespace

DqnSettings::DqnSettings() {
  lr = 5e-4;
  epsilon.points = {{0.0, 1.0}, {10'000.0, 0.05}};
}

void DqnSettings::describe(Fields& field) {
  field("lr", lr, {0, 10}, "learning rate of Adam");
  field("epsilon", epsilon, {0, 1}, "probability that an agent draws its action from the legal choices");
  field("gamma", gamma, {0, 1}, "discount per step");
  field("reward_scale", reward_scale, above(0, 1e9), "rewards are multiplied by it before learning");
  replay.describe(field);
  field("target_every", target_every, {1, 1e12},
        "environment steps after which the target network moves; less than a rollout: several times in its "
        "updates");
  field("tau", tau, above(0, 1), "how far it moves towards the network; 1: it becomes a copy");
  field("double_q", double_q, "the network chooses the next action that the target network values");
  field("huber", huber, {0, 1e9}, "errors beyond it count linearly; 0: all errors are squared");
  field("cql_alpha", cql_alpha, {0, 1e9},
        "weight of conservative Q-learning's penalty, which keeps values of choices that were not played "
        "low; for "
        "recorded transitions (trainer.offline)");
  field("clip_grad_norm", clip_grad_norm, "limit the norm of the gradient");
  field("max_grad_norm", max_grad_norm, above(0, 1e9), "that limit");
  field("adam_epsilon", adam_epsilon, {kLeastAdamEpsilon, 1}, "added to Adam's denominator");
}

double DqnSettings::bytes(const WorkerShape& worker) const {
  return model_bytes(make_networks(worker.layout, worker.model, output(), {}, worker.precision), 0,
                     worker.precision, false) +
         Replay::bytes(worker, replay) + Replay::rows(worker, replay) * sizeof(float);
}

std::unique_ptr<Algorithm> DqnSettings::make(const AlgorithmContext& context) const {
  return std::make_unique<Dqn>(context, *this);
}

WD_REGISTER_ALGORITHM(DqnSettings);

}  // namespace wd
