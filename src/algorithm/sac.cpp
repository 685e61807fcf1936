// sac.cpp: soft actor-critic (Haarnoja et al. 2018, arXiv 1812.05905). The actor draws actions from a
// Gaussian that tanh squashes to the bounds, and whose deviation depends on the state. With temperature
// alpha,
//   y = r_t + ... + gamma^n (min_i Q'_i(s', a') - alpha log pi(a'|s')), a' drawn from pi(.|s'),
//   the loss of the actor is alpha log pi(a|s) - min_i Q_i(s, a), a drawn from pi(.|s),
// through the action; and log alpha grows where the entropy is below target_entropy, with the gradient
// -(log pi + target_entropy). Of choices, the actor's distribution is a softmax of each head, and both
// expectations over its choices are exact (Christodoulou 2019, arXiv 1910.07207). Differences from the paper:
// replicas play together, and n steps; the default target_entropy of choices is a share of the highest
// entropy that the choices that are legal in a row allow, not of all choices: else it may be out of reach,
// and alpha grows without limit.
#include <ATen/ATen.h>

#include <cmath>
#include <optional>

#include "src/base/join.h"
#include "src/device/device.h"
#include "wd/actor_critic.h"
#include "wd/error.h"

namespace wd {

namespace {

// Of choices: the share of the entropy of uniform draws.
constexpr double kShareOfEntropy = 0.5;

std::string cannot_reach(double highest) {
  return concat("cannot be reached: uniform draws have ", highest, ": lower it, or leave it out");
}

// The entropy that a row's actions should have is `fixed` + `share` of the highest that is possible there.
struct EntropyTarget {
  double fixed = 0.0, share = 0.0;

  static EntropyTarget of(const std::optional<double>& setting, const AlgorithmContext& context) {
    const PolicyBuffers& buffers = context.buffers();
    const ActionSpace& actions = buffers.action_space;
    const double highest = highest_entropy(actions);
    if (setting && *setting > highest && context.to_train)
      throw UsageError(
          concat("policy '", buffers.name, "': target_entropy = ", *setting, ' ', cannot_reach(highest)));
    if (setting) return {*setting, 0.0};
    if (actions.is_continuous()) return {-static_cast<double>(actions.components()), 0.0};
    return buffers.has_action_mask ? EntropyTarget{0.0, kShareOfEntropy}
                                   : EntropyTarget{kShareOfEntropy * highest, 0.0};
  }
};

class Sac final : public ActorCritic {
 public:
  Sac(const AlgorithmContext& context, const SacSettings& settings);

  void begin_update(const TrainingClock& clock) override;
  void check() const override;
  std::vector<NamedTensor> state() const override;
  void state_changed() override;
  std::vector<std::pair<std::string, double>> metrics() const override;
  std::string warning() const override;

 protected:
  void targets(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const override;
  void actor_pass(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const override;
  void begin_actor_step(const at::Tensor& totals, std::optional<bool> stopping) override;
  bool end_actor_step() override;
  float conservative() const override { return static_cast<float>(own_.cql_alpha); }

 private:
  void compute_alpha();
  const float* alpha() const { return alpha_.const_data_ptr<float>(); }
  void choices_targets(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const;
  void choices_pass(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const;

  const SacSettings& own_;
  const double highest_entropy_;  // of uniform draws
  const EntropyTarget target_entropy_;
  Model temperature_;  // one number: log alpha
  Learned tuned_;      // of the temperature
  Coefficients rate_;
  at::Tensor alpha_;   // [1] float32
  at::Tensor totals_;  // [2] float64: rows and the sum of the temperature's loss
};

Sac::Sac(const AlgorithmContext& context, const SacSettings& settings)
    : ActorCritic(context, settings,
                  {.for_targets = {{&context.policy().model(), ModelUse::kForward}},
                   .rows = {{"action", context.policy().action_layout().components}, {"log_prob", 1}}}),
      own_(settings),
      highest_entropy_(highest_entropy(context.buffers().action_space)),
      target_entropy_(EntropyTarget::of(settings.target_entropy, context)),
      temperature_({}, 1, device_, kFp32),
      tuned_(temperature_, {.names = {nullptr, "the temperature's loss"}}, settings.adam_epsilon,
             context.group, concat("the temperature of policy '", policy_.name(), "'"),
             temperature_.named_parameters()),
      rate_(std::array{&settings.temperature_lr}, device_),
      alpha_(at::zeros({1}, policy_.parameters().options())),
      totals_(at::zeros({2}, alpha_.options().dtype(at::kDouble))) {
  temperature_.numbers(temperature_.parameters()).fill_(wd::log(static_cast<float>(settings.temperature)));
  compute_alpha();
}

void Sac::compute_alpha() {
  const at::Tensor& log_alpha = temperature_.numbers(temperature_.parameters());
  if (device_.is_cuda())
    at::exp_out(alpha_, log_alpha);
  else  // torch's bits depend on the processor
    alpha_.fill_(wd::exp(*log_alpha.const_data_ptr<float>()));
}

void Sac::begin_update(const TrainingClock& clock) {
  ActorCritic::begin_update(clock);
  rate_.update(clock);
  tuned_.begin_update(rate_.value(0), nullptr, nullptr, failed_);
}

void Sac::targets(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const {
  if (!is_continuous()) return choices_targets(lane, batch, begin, end);
  targets_of(policy_.model().network(0), lane, batch, begin, end, {}, alpha());
}

void Sac::actor_pass(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const {
  if (!is_continuous()) return choices_pass(lane, batch, begin, end);
  learn_from_critics(lane, batch, begin, end, kMaxCritics, alpha());
}

void Sac::choices_targets(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const {
  const Network& actor = policy_.model().network(0);
  actor.forward(next_input(batch, begin, end), lane.of(actor));
  const at::Tensor logits = at_next(batch, begin, end, lane.of(actor).output, lane, "next_actor");
  choices_target(current_queue(device_), {.rows = end - begin,
                                          .critics = criticize_next(batch, lane, {}, begin, end),
                                          .choices = {policy_.action_layout(), rows_of<const float>(logits),
                                                      legal_of(batch.next, begin)},
                                          .alpha = alpha(),
                                          .reward = at_row<const float>(batch.reward, begin),
                                          .discount = at_row<const float>(batch.discount, begin),
                                          .target = rows_of<float>(lane.rows("target"))});
}

void Sac::choices_pass(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const {
  const PolicyPass pass = policy_.forward(lane, batch.now, begin, end);
  const at::Tensor& output_grad = lane.rows("output_grad");
  choices_loss(current_queue(device_),
               {.rows = end - begin,
                .critics = criticize(*policy_.critics(), lane, critics_input(batch, {}, begin, end)),
                .choices = {policy_.action_layout(), pass.computed.output, legal_of(batch.now, begin)},
                .alpha = alpha(),
                .weight = at_row<const float>(batch.weight, begin),
                .logits_grad = rows_of<float>(output_grad),
                .row_sums = at_row<float>(lane.row_sums())});
  policy_.backward(lane, pass, output_grad, {}, {});
}

// The temperature learns from the log-probabilities of the actor's own actions: the loss of a row is
// -log alpha (log pi + target_entropy).
void Sac::begin_actor_step(const at::Tensor& totals, std::optional<bool> stopping) {
  if (!own_.tune_temperature) return;
  temperature_loss(current_queue(device_), {.sums = totals.const_data_ptr<double>(),
                                            .log_alpha = temperature_.parameters().const_data_ptr<float>(),
                                            .target_entropy = target_entropy_.fixed,
                                            .share_of_highest = target_entropy_.share,
                                            .gradient = temperature_.gradients().mutable_data_ptr<float>(),
                                            .totals = totals_.mutable_data_ptr<double>()});
  tuned_.begin_step(totals_, stopping);
}

bool Sac::end_actor_step() {
  if (!own_.tune_temperature) return true;
  if (!tuned_.end_step()) return false;
  compute_alpha();
  return true;
}

void Sac::check() const {
  ActorCritic::check();
  tuned_.check();
}

std::vector<NamedTensor> Sac::state() const {
  std::vector<NamedTensor> own = {{"log_temperature", temperature_.parameters()}};
  for (const NamedTensor& named : tuned_.state()) own.push_back({"temperature." + named.name, named.tensor});
  return joined(ActorCritic::state(), own);
}

void Sac::state_changed() {
  ActorCritic::state_changed();
  compute_alpha();
}

std::vector<std::pair<std::string, double>> Sac::metrics() const {
  return joined(ActorCritic::metrics(),
                {{"entropy", mean_entropy()}, {"temperature", alpha_.cpu()[0].item<double>()}});
}

// A temperature that grows while the entropy stays below its target weighs the entropy more and more, until
// nothing else counts.
std::string Sac::warning() const {
  constexpr double kGrown = 1e3;  // times its first value
  const std::vector<double> sums = sums_of_actor();
  if (!(sums[kActorCount] > 0.0)) return {};
  const double highest = is_continuous() ? highest_entropy_ : ratio(sums[kActorHighest], sums[kActorCount]),
               target = target_entropy_.fixed + target_entropy_.share * highest, entropy = mean_entropy(),
               alpha = alpha_.cpu()[0].item<double>();
  const bool unreachable = target > highest, grown = alpha > kGrown * own_.temperature;
  if (!own_.tune_temperature || entropy >= target || !(unreachable || grown))
    return warning_of(std::abs(alpha * entropy));
  return concat("policy '", policy_.name(), "': the entropy of its actions, ", entropy,
                ", stays below target_entropy, ", target, ", and the temperature grows (", alpha, "): ",
                unreachable
                    ? concat("the legal choices allow at most ", highest, " on average, so it never stops")
                    : std::string("it may weigh more than all rewards"),
                "; lower target_entropy, or leave it out");
}

}  // namespace

void SacSettings::describe(Fields& field) {
  ActorCriticSettings::describe(field);
  describe_critics(field, num_critics);
  field("cql_alpha", cql_alpha, {0, 1e9},
        "weight of conservative Q-learning's penalty: of choices as in DQN; otherwise "
        "the value of an action that "
        "the actor draws, less that of the one that was played");
  field("temperature", temperature, above(0, 1e6), "weight of the entropy, at first");
  field("tune_temperature", tune_temperature, "adapt it so that the entropy approaches target_entropy");
  field("temperature_lr", temperature_lr, {0, 10}, "learning rate of its logarithm's Adam");
  field(
      "target_entropy", target_entropy, {-1e6, 1e6},
      "entropy of the actions [nat], of components in half-widths; empty: minus the number of components, or "
      "of choices half of the highest entropy that the legal ones allow in each row");
}

void SacSettings::check(const TrainingShape& shape, const Problem& problem) const {
  OffPolicySettings::check(shape, problem);
  if (target_entropy && *target_entropy > shape.highest_entropy)
    problem("target_entropy", concat(*target_entropy), cannot_reach(shape.highest_entropy));
}

AlgorithmTraits SacSettings::traits() const {
  AlgorithmTraits traits = OffPolicySettings::traits();
  traits.windows = true;
  traits.output = PolicyOutput::kActor;
  traits.critics = num_critics;
  return traits;
}

std::unique_ptr<Algorithm> SacSettings::make(const AlgorithmContext& context) const {
  return std::make_unique<Sac>(context, *this);
}

WD_REGISTER_ALGORITHM(SacSettings);

}  // namespace wd
