// dqn.cpp: deep Q-network (Mnih et al. 2015). The replicas act epsilon-greedily on Q(s, a); what they play
// goes to a replay memory, from which every update draws a batch. The target of a transition is
//   r_t + ... + gamma^{n-1} r_{t+n-1} + gamma^n Q'(s_{t+n}, a*),
// where Q' is the target network, a copy of Q that follows it now and then, and a* the best legal action by Q
// (double Q-learning, van Hasselt et al. 2016, arXiv 1509.06461) or by Q'. It ends with the episode: at a
// termination there is no value, at a truncation that of the last observation. The loss is Huber's of the
// error, weighted if the draw was prioritized, and, with cql_alpha, the penalty of conservative Q-learning
// (wd/kernels/td.h). Differences from the paper: Adam, double Q-learning and a rollout of many replicas at a
// time; each of several heads takes its best choice, and Q is the sum over heads.
//
// VDN and QMIX are the same for teams: all agents of the policy in one replica, whose rewards are added up,
// and whose value Q_tot is mixed from those of its agents' actions (wd/kernels/team.h). With double
// Q-learning, each agent's best action is chosen by its own Q.
#include <ATen/ATen.h>

#include <string>
#include <utility>

#include "src/algorithm/measure.h"
#include "src/algorithm/mixing.h"
#include "src/base/join.h"
#include "src/nets/values.h"
#include "wd/kernels/td.h"
#include "wd/policy_pass.h"
#include "wd/replay_algorithm.h"

namespace wd {

namespace {

SumNames td_sums() { return {.names = {nullptr, "the loss of the values", "the value", "the target"}}; }

class Dqn final : public ReplayAlgorithm {
 public:
  Dqn(const AlgorithmContext& context, const DqnSettings& settings);

  std::vector<NamedTensor> state() const override;
  void state_changed() override;
  void weights_changed() override { target_.follow(policy_.model(), 1.0f); }
  std::vector<std::pair<std::string, double>> metrics() const override;
  std::string warning() const override { return warning_of(mean_of_sum(kTdValue), mean_of_sum(kTdTarget)); }

 private:
  enum Variant { kLearn, kLearnAndFollow };

  int variant(std::int64_t iteration) const override;
  bool follows_before(std::int64_t update) const;
  void before_update(std::int64_t update) override;
  at::Tensor accumulate(const ReplayBatch& batch, const std::function<bool()>& should_stop) override;
  at::Tensor played_values(const Batch& batch, std::int64_t rows) const override;
  at::Tensor values(const Network& network, const Lane& lane) const;
  NextValues value_next(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const;
  void pass(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const;

  const DqnSettings& settings_;
  const Mixing mixing_;
  Model target_;
  Lanes lanes_;
  const int quantiles_;  // K of the network's values: 1, or as many as model.quantiles says
};

// How many numbers a network gives for the value of a choice.
int quantiles_of(const Policy& policy) {
  const ValuesNetwork* const network = ValuesNetwork::of(policy.model().network(0));
  return network == nullptr ? 1 : network->num_quantiles();
}

Dqn::Dqn(const AlgorithmContext& context, const DqnSettings& settings)
    : ReplayAlgorithm(context, settings, plan_of_policy(context, settings, td_sums(), settings.epsilon)),
      settings_(settings),
      mixing_(policy_, settings.mixer),
      target_(policy_.model().like()),
      lanes_({{&policy_.model(), ModelUse::kLearns}, {&target_, ModelUse::kForward}}, kNumTdSums,
             joined(mixing_.with_memory(
                        {{"target", quantiles_of(policy_)},
                         {"output_grad", policy_.action_layout().columns() * quantiles_of(policy_), true}}),
                    memory_of_next({{"select", policy_.action_layout().columns()},
                                    {"value", policy_.action_layout().columns() * quantiles_of(policy_)}})),
             device_),
      quantiles_(quantiles_of(policy_)) {}

int Dqn::variant(std::int64_t iteration) const {
  const std::int64_t every = settings_.target_every, before = iteration * batch_steps_;
  return before / every < (before + batch_steps_) / every ? kLearnAndFollow : kLearn;
}

// Whether the target moves before this update, from 0. If it moves more than once per iteration, the updates
// share its environment steps.
bool Dqn::follows_before(std::int64_t update) const {
  if (current_variant() != kLearnAndFollow) return false;
  const auto moves = [&](std::int64_t k) { return k * batch_steps_ / (updates_ * settings_.target_every); };
  return update == 0 || moves(update - 1) < moves(update);
}

void Dqn::before_update(std::int64_t update) {
  if (follows_before(update)) target_.follow(policy_.model(), static_cast<float>(settings_.tau));
}

// Returns the sums by TdSum.
at::Tensor Dqn::accumulate(const ReplayBatch& batch, const std::function<bool()>& should_stop) {
  return run(
      lanes_, batch, [&](Lane& lane, std::int64_t begin, std::int64_t end) { pass(lane, batch, begin, end); },
      should_stop);
}

at::Tensor Dqn::played_values(const Batch& batch, std::int64_t rows) const {
  if (mixing_.is_on() || (has_state() && !batch.state.defined())) return {};
  const Probe probe{&policy_.model().network(0), policy_.input(batch, 0, rows)};
  const at::Tensor output = run_once(probe, rows)->output.narrow(0, 0, rows).cpu().to(at::kDouble);
  return taken_values(output, batch.action.narrow(0, 0, rows).cpu(), policy_.action_layout()).unsqueeze(0);
}

// The values of all choices, [rows, choices], or their quantiles, [rows, choices, K]; the network's last pass
// in this lane.
at::Tensor Dqn::values(const Network& network, const Lane& lane) const {
  const Network::Workspace& workspace = lane.of(network);
  return quantiles_ == 1 ? workspace.output : ValuesNetwork::of(network)->quantiles(workspace);
}

// Computes the values of the next states, and what their targets follow from.
NextValues Dqn::value_next(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const {
  const Network &online = policy_.model().network(0), &target = target_.network(0);
  const NetworkInput next = next_input(batch, begin, end);
  target.forward(next, lane.of(target));
  if (settings_.double_q) online.forward(next, lane.of(online));
  const at::Tensor& by = lane.of(settings_.double_q ? online : target).output;
  return {.layout = policy_.action_layout(),
          .select = rows_of<const float>(at_next(batch, begin, end, by, lane, "select")),
          .value = rows_of<const float>(at_next(batch, begin, end, values(target, lane), lane, "value")),
          .legal = legal_of(batch.next, begin),
          .reward = at_row<const float>(batch.reward, begin),
          .discount = at_row<const float>(batch.discount, begin),
          .target = rows_of<float>(lane.rows("target"))};
}

void Dqn::pass(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const {
  const Queue queue = current_queue(device_);
  const Network& online = policy_.model().network(0);
  const NextValues next = value_next(lane, batch, begin, end);
  if (mixing_.is_on())
    mixing_.target(lane, target_, batch.next, begin, end, next);
  else
    td_target(queue, {end - begin, quantiles_, next});

  const PolicyPass now = policy_.forward(lane, batch.now, begin, end);
  const at::Tensor& output_grad = lane.rows("output_grad");
  const ValueLoss loss{.layout = next.layout,
                       .output = rows_of<const float>(values(online, lane)),
                       .action = at_row<const std::int32_t>(batch.now.action, begin),
                       .target = next.target,
                       .weight = at_row<const float>(batch.weight, begin),
                       .huber = static_cast<float>(settings_.huber),
                       .output_grad = rows_of<float>(output_grad),
                       .error = at_row<float>(error_, begin),
                       .row_sums = at_row<float>(lane.row_sums())};
  if (mixing_.is_on()) return mixing_.learn(lane, now, batch.now, begin, end, loss);
  td_loss(queue, {.rows = end - begin,
                  .quantiles = quantiles_,
                  .loss = loss,
                  .cql = static_cast<float>(settings_.cql_alpha),
                  .legal = legal_of(batch.now, begin)});
  if (quantiles_ == 1) return policy_.backward(lane, now, output_grad, {}, {});
  const at::Tensor z_grad =
      output_grad.narrow(0, 0, end - begin).unflatten(1, {next.layout.columns(), quantiles_});
  ValuesNetwork::of(online)->backward_quantiles(now.actor_input, z_grad, *now.actor, lane.gradient(online));
}

std::vector<NamedTensor> Dqn::state() const {
  return joined(ReplayAlgorithm::state(), {{"target", target_.parameters()}});
}

void Dqn::state_changed() {
  ReplayAlgorithm::state_changed();
  target_.refresh_shadow();
}

std::vector<std::pair<std::string, double>> Dqn::metrics() const {
  const double loss = mean_of_sum(kTdLoss);
  std::vector<std::pair<std::string, double>> all = {{"total_loss", loss},
                                                     {"value_loss", loss},
                                                     {"value_mean", mean_of_sum(kTdValue)},
                                                     {"return_mean", mean_of_sum(kTdTarget)},
                                                     {"epsilon", exploration_.epsilon()}};
  for (const auto& more : {optimizer_metrics(), batch_metrics()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

DqnSettings::DqnSettings() {
  lr = 5e-4;
  epsilon.points = {{0.0, 1.0}, {10'000.0, 0.05}};
}

void DqnSettings::describe(Fields& field) {
  describe_lr(field);
  field("epsilon", epsilon, {0, 1}, "probability that an agent draws its action from the legal choices");
  field("gamma", gamma, {0, 1}, "discount per step");
  field("reward_scale", reward_scale, above(0, 1e9), "rewards are multiplied by it before learning");
  replay.describe(field);
  field("target_every", target_every, {1, 1e12},
        "environment steps after which the target network moves; less than a "
        "rollout: several times in its updates");
  field("tau", tau, above(0, 1), "how far it moves towards the network; 1: it becomes a copy");
  field("double_q", double_q, "the network chooses the next action that the target network values");
  field("huber", huber, {0, 1e9}, "errors beyond it count linearly; 0: all errors are squared");
  if (mixer.kind == Mixer::kNone)
    field("cql_alpha", cql_alpha, {0, 1e9},
          "weight of conservative Q-learning's penalty, which keeps values of choices that were not played "
          "low; for "
          "recorded transitions (trainer.offline)");
  describe_mixer(field, mixer);
  describe_optimizer(field);
}

AlgorithmTraits DqnSettings::traits() const {
  AlgorithmTraits traits = OffPolicySettings::traits();
  traits.output = PolicyOutput::kValues;
  traits.mixer = mixer;
  traits.windows = true;
  traits.learns_quantiles = mixer.kind == Mixer::kNone;
  return traits;
}

double DqnSettings::bytes(const WorkerShape& worker) const {
  return OffPolicySettings::bytes(worker) + bytes_of_target(worker);
}

std::unique_ptr<Algorithm> DqnSettings::make(const AlgorithmContext& context) const {
  return std::make_unique<Dqn>(context, *this);
}

VdnSettings::VdnSettings() { mixer.kind = Mixer::kSum; }
QmixSettings::QmixSettings() { mixer.kind = Mixer::kMonotone; }

WD_REGISTER_ALGORITHM(DqnSettings);
WD_REGISTER_ALGORITHM(VdnSettings);
WD_REGISTER_ALGORITHM(QmixSettings);

}  // namespace wd
