// learner.cpp: advantages, then epochs over minibatches: loss, gradient, clipping, Adam.
#include <ATen/ATen.h>

#include <cmath>
#include <deque>
#include <optional>
#include <utility>

#include "kernels/loss.h"
#include "kernels/normalize_body.h"
#include "kernels/reduce.h"
#include "kernels/returns.h"
#include "src/algorithm/adam.h"
#include "src/algorithm/coefficients.h"
#include "src/algorithm/guard.h"
#include "src/algorithm/minibatches.h"
#include "src/device.h"
#include "src/program_name.h"
#include "src/tensor_device.h"
#include "wd/algorithm.h"
#include "wd/error.h"

namespace wd {

struct Learner::Impl {
  Policy& policy;
  const Trajectory& trajectory;
  const PolicyBuffers& buffers;
  const PolicySettings settings;
  std::uint64_t seed;
  Device device;
  Adam adam;
  Minibatches minibatches;
  ProcessGroup group;
  at::Tensor partial;            // working memory of reductions, float64
  at::Tensor moments;            // those below, one after the other
  at::Tensor advantage_moments;  // [kNumMoments] float64
  at::Tensor taught_moments;     // of what the value is taught, where that is not the target as it was
  at::Tensor target_moments, value_moments;
  at::Tensor step_moments;               // [T, kNumMoments], of each step's targets, with normalize_return
  at::Tensor advantage_norm;             // [2] float32
  at::Tensor squares;                    // [1] float64
  at::Tensor finite_here;                // [1] int64: 0 once a gradient of this rank was not finite
  const std::int64_t* failed = nullptr;  // on the device: not 0 where nothing may be learned; or null
  int epoch = 0, minibatch = 0;          // of the update under way: the next to begin
  bool done = true;                      // no step is left to begin
  std::string poisoned;                  // for tests
  Coefficients coefficients;             // of the last update

  Impl(Policy& p, const Trajectory& t, int index, const PolicySettings& s, std::uint64_t run_seed,
       ProcessGroup g)
      : policy(p),
        trajectory(t),
        buffers(t.policies()[static_cast<std::size_t>(index)]),
        settings(s),
        seed(run_seed),
        adam(p.parameters(), p.shadow(), s.adam_epsilon),
        minibatches(buffers, t.steps(), t.num_envs(), s.algorithm == kPpo ? s.num_minibatches : 1, g.rank()),
        group(std::move(g)),
        coefficients(s, device_holding(buffers.value)) {
    if (s.algorithm == kReinforce && s.to_train && t.steps() < 2 * t.time_limit())
      throw UsageError(concat("policy '", p.name(),
                              "': REINFORCE learns from episodes that must end within a rollout, whose ",
                              t.steps(), " steps are less than twice the time limit of ", t.time_limit()));
    const auto doubles = buffers.value.options().dtype(at::kDouble);
    device = device_holding(buffers.value);
    const std::int64_t most = std::max(buffers.mask.numel(), p.parameters().numel());
    partial = at::zeros({kNumMoments * num_chunks(most)}, doubles);
    const std::int64_t normalized_steps = settings.normalize_return ? t.steps() : 0;
    moments = at::zeros({(4 + normalized_steps) * kNumMoments}, doubles);
    advantage_moments = moments.narrow(0, 0, kNumMoments);
    taught_moments = moments.narrow(0, kNumMoments, kNumMoments);
    target_moments = moments.narrow(0, 2 * kNumMoments, kNumMoments);
    value_moments = moments.narrow(0, 3 * kNumMoments, kNumMoments);
    step_moments = moments.narrow(0, 4 * kNumMoments, normalized_steps * kNumMoments);
    advantage_norm = at::zeros({2}, buffers.value.options());
    squares = at::zeros({1}, doubles);
    finite_here = at::ones({1}, doubles.dtype(at::kLong));
  }

  void moments_of(const at::Tensor& x, at::Tensor& out) {
    masked_moments(current_queue(device), x.const_data_ptr<float>(),
                   buffers.mask.const_data_ptr<std::uint8_t>(), buffers.mask.numel(),
                   partial.mutable_data_ptr<double>(), out.mutable_data_ptr<double>());
  }
  void square(const at::Tensor& x) {
    sum_of_squares(current_queue(device), x.const_data_ptr<float>(), x.numel(),
                   partial.mutable_data_ptr<double>(), squares.mutable_data_ptr<double>());
  }
  ReturnsArgs returns_args() const;
  void normalize_targets();
  LossSettings loss_settings() const;
  void check_finite(const StepRecord& record) const;
  void begin_prepare();
  void end_prepare();
  void begin_update(const TrainingClock& clock);
  void begin_step(const TrainingClock& clock, const std::function<bool()>& give_up);
  bool end_step();
  void begin_sum_over_ranks();
  bool end_sum_over_ranks();

  // Of what was begun.
  std::function<void()> sum_arrives;
  at::Tensor totals;
  std::optional<bool> given_up;  // by this rank; none where nobody may
};

ReturnsArgs Learner::Impl::returns_args() const {
  ReturnsArgs args;
  args.method = settings.algorithm == kReinforce ? ReturnMethod::kMonteCarlo
                : settings.n_step > 0            ? ReturnMethod::kNStep
                                                 : ReturnMethod::kGae;
  args.steps = trajectory.length();
  args.num_envs = trajectory.num_envs();
  args.num_agents = buffers.num_agents;
  args.gamma = static_cast<float>(settings.gamma);
  args.lambda = static_cast<float>(settings.gae_lambda);
  args.n_step = settings.n_step;
  args.time_limit = trajectory.time_limit();
  args.reward = buffers.reward.const_data_ptr<float>();
  args.value = buffers.value.const_data_ptr<float>();
  args.active = buffers.active.const_data_ptr<std::uint8_t>();
  args.agent_terminated = buffers.agent_terminated.const_data_ptr<std::uint8_t>();
  args.terminated = trajectory.terminated().const_data_ptr<std::uint8_t>();
  args.truncated = trajectory.truncated().const_data_ptr<std::uint8_t>();
  args.reset_step = trajectory.reset_step().const_data_ptr<std::uint8_t>();
  args.advantage = buffers.advantage.mutable_data_ptr<float>();
  args.target = buffers.target.mutable_data_ptr<float>();
  args.mask = buffers.mask.mutable_data_ptr<std::uint8_t>();
  return args;
}

// Targets of mean 0 and deviation 1 over all agents of all replicas, step by step, as WarpDrive's; the advantage is what they exceed
// the value by (REINFORCE: all of it). What one step's mean takes away is the same for all who acted in it: of returns that bootstrap a
// value which was itself taught normalized ones, this removes what depends on the place in the rollout alone.
void Learner::Impl::normalize_targets() {
  NormalizeTargetsArgs args;
  args.n = buffers.mask.numel();
  args.per_step = buffers.mask.stride(0);
  args.moments = step_moments.const_data_ptr<double>();
  args.mask = buffers.mask.const_data_ptr<std::uint8_t>();
  if (settings.algorithm != kReinforce) args.value = buffers.value.const_data_ptr<float>();
  args.target = buffers.target.mutable_data_ptr<float>();
  args.advantage = buffers.advantage.mutable_data_ptr<float>();
  wd::normalize_targets(current_queue(device), args);
  moments_of(buffers.target, taught_moments);
  moments_of(buffers.advantage, advantage_moments);
  group.all_reduce(moments.narrow(0, 0, 2 * kNumMoments));
}

LossSettings Learner::Impl::loss_settings() const {
  LossSettings loss;
  loss.ppo = settings.algorithm == kPpo;
  loss.with_value = settings.algorithm != kReinforce;
  loss.scheduled = coefficients.of_loss();
  if (settings.normalize_advantage) loss.advantage_norm = advantage_norm;
  return loss;
}

// Gradients and totals begin to become the sums over ranks, in one operation, and so does whether any rank gave up. They travel as
// float32: the number of rows is exact to 2^24 in a minibatch, and beyond that right to 6e-8 of itself; none stays none.
void Learner::Impl::begin_sum_over_ranks() {
  const at::Tensor flat = policy.gradients_and_more();
  const std::int64_t P = policy.parameters().numel();
  square(flat.narrow(0, 0, P));
  note_finite(current_queue(device), {squares.const_data_ptr<double>(), totals.const_data_ptr<double>(),
                                      finite_here.mutable_data_ptr<std::int64_t>()});
  flat.narrow(0, P, kNumLossSums).copy_(totals);
  flat[P + kNumLossSums].fill_(given_up.value_or(false) ? 1.0 : 0.0);
  sum_arrives = group.begin_all_reduce(flat);
}

// Whether any rank gave up.
bool Learner::Impl::end_sum_over_ranks() {
  std::exchange(sum_arrives, {})();
  const at::Tensor flat = policy.gradients_and_more();
  const std::int64_t P = policy.parameters().numel();
  totals.copy_(flat.narrow(0, P, kNumLossSums));
  return given_up && flat[P + kNumLossSums].item<float>() > 0.0f;  // looking waits for the device
}

// Throws where a step was refused, because the losses or the gradient's norm were NaN or infinite: on ranks that had no part in it a PeerError. All ranks.
void Learner::Impl::check_finite(const StepRecord& record) const {
  if (record.refused == 0.0) return;
  const at::Tensor guilty = group.all_gather_rows(1 - finite_here.cpu());
  if (guilty[group.rank()].item<std::int64_t>() == 0 && guilty.sum().item<std::int64_t>() > 0)
    throw PeerError(concat("policy '", policy.name(), "': the gradient of rank ",
                           guilty.argmax().item<std::int64_t>(), " is not finite"));
  std::string what = "the norm of the gradient";
  const at::Tensor first = at::empty({1}, moments.options().dtype(at::kLong));
  if (const auto found = not_finite(policy.gradients(), first, device))
    what = "the gradient of " + parameter_at(policy, *found);
  for (const auto& [sum, name] : {std::pair(kEntropy, "the entropy"),
                                  {kValueLoss, "the value loss"},
                                  {kPolicyLoss, "the policy loss"}}) {
    if (!std::isfinite(record.sums[sum])) what = name;
  }
  throw std::runtime_error("policy '" + policy.name() + "': " + what +
                           " is not finite; the optimizer made no step with it: lower the learning rate, or "
                           "look at the environment with `" +
                           program_name() + " check`");
}

// The gradient of the next minibatch, on its way to the other ranks.
void Learner::Impl::begin_step(const TrainingClock& clock, const std::function<bool()>& give_up) {
  if (minibatch == 0) minibatches.shuffle(seed, clock.time(), epoch);
  totals = policy.accumulate(minibatches.gather(minibatch), loss_settings(), give_up);
  given_up.reset();
  if (give_up) given_up = give_up();
  if (poisoned == "loss") totals[kPolicyLoss].fill_(std::nan(""));
  if (poisoned == "gradient") policy.gradients()[0].fill_(std::nan(""));
  poisoned.clear();
  if (group.size() > 1) begin_sum_over_ranks();
  const int epochs = settings.algorithm == kPpo ? settings.num_epochs : 1;
  minibatch = (minibatch + 1) % minibatches.count();
  if (minibatch == 0) ++epoch;
  done = epoch == epochs;
}

// The optimizer's step with it, unless the policy has moved target_kl too far, which ends the update (on CUDA the steps left to
// begin do nothing). False: given up.
bool Learner::Impl::end_step() {
  if (group.size() > 1) given_up = end_sum_over_ranks();
  if (given_up == true) return false;
  adam.step(policy.gradients(), totals);
  policy.shadow_is_written();
  if (device.is_cuda()) return true;  // check() looks when it is time, so as not to wait here
  const StepRecord record = adam.record();
  check_finite(record);
  done = done || record.stopped != 0.0;
  return true;
}

Learner::Learner(Policy& policy, const Trajectory& trajectory, int index, const PolicySettings& settings,
                 std::uint64_t seed, ProcessGroup group)
    : impl_(std::make_unique<Impl>(policy, trajectory, index, settings, seed, std::move(group))) {}
Learner::~Learner() = default;
Learner::Learner(Learner&&) noexcept = default;

void Learner::Impl::begin_prepare() {
  returns(current_queue(device), returns_args());
  if (settings.normalize_return) {
    masked_row_moments(current_queue(device), buffers.target.const_data_ptr<float>(),
                       buffers.mask.const_data_ptr<std::uint8_t>(), trajectory.steps(),
                       buffers.mask.stride(0), step_moments.mutable_data_ptr<double>());
  } else {
    moments_of(buffers.advantage, advantage_moments);
  }
  moments_of(buffers.target, target_moments);
  moments_of(buffers.value, value_moments);
  sum_arrives = group.begin_all_reduce(moments);
}

void Learner::Impl::end_prepare() {
  std::exchange(sum_arrives, {})();
  if (settings.normalize_return) normalize_targets();
  normalization(current_queue(device),
                {advantage_moments.const_data_ptr<double>(), advantage_norm.mutable_data_ptr<float>()});
}

void Learner::Impl::begin_update(const TrainingClock& clock) {
  coefficients.update(clock);
  adam.begin_update(coefficients, {.norm = settings.clip_grad_norm, .kl = settings.algorithm == kPpo},
                    failed);
  epoch = minibatch = 0;
  done = !settings.to_train;
}

void prepare(std::span<Learner> learners) {
  for (Learner& learner : learners) learner.impl_->begin_prepare();
  for (Learner& learner : learners) learner.impl_->end_prepare();
}

bool update(std::span<Learner> learners, const TrainingClock& clock, const std::function<bool()>& give_up) {
  std::deque<Learner::Impl*> under_way;  // in the order in which their steps were begun
  const auto begin_step = [&](Learner::Impl& self) {
    if (self.done) return;
    self.begin_step(clock, give_up);
    under_way.push_back(&self);
  };
  for (Learner& learner : learners) {
    learner.impl_->begin_update(clock);
    begin_step(*learner.impl_);
  }
  bool complete = true;  // once it is false, what travels has yet to arrive
  while (!under_way.empty()) {
    Learner::Impl& self = *under_way.front();
    under_way.pop_front();
    complete = self.end_step() && complete;
    if (complete) begin_step(self);
  }
  return complete;
}

void Learner::heed(const std::int64_t* failed) { impl_->failed = failed; }
void Learner::check() const { impl_->check_finite(impl_->adam.record()); }

void Learner::poison_next(const std::string& tensor) { impl_->poisoned = tensor; }

std::vector<NamedTensor> Learner::optimizer() const {
  const Adam& adam = impl_->adam;
  return {{"first_moment", adam.first_moment()},
          {"second_moment", adam.second_moment()},
          {"steps", adam.steps()}};
}

std::vector<std::pair<std::string, double>> Learner::metrics() const {
  const Impl& self = *impl_;
  const StepRecord record = self.adam.record();
  const double count = std::max(record.sums[kCount], 1.0);
  const auto mean = [&](LossSum which) { return record.sums[which] / count; };
  const auto statistics = [&](const at::Tensor& moments) {
    const at::Tensor host = moments.cpu();
    return std::pair(mean_of(host.const_data_ptr<double>()), variance_of(host.const_data_ptr<double>()));
  };
  const auto [advantage, advantage_variance] = statistics(self.advantage_moments);
  const auto [target, target_variance] = statistics(self.target_moments);
  const double taught_variance =
      self.settings.normalize_return ? statistics(self.taught_moments).second : target_variance;
  const at::Tensor coefficients = self.coefficients.value().cpu();
  const double* const now = coefficients.const_data_ptr<double>();
  const double loss =
      mean(kPolicyLoss) + now[kValueCoeff] * mean(kValueLoss) - now[kEntropyCoeff] * mean(kEntropy);
  return {{"total_loss", loss},
          {"policy_loss", mean(kPolicyLoss)},
          {"value_loss", mean(kValueLoss)},
          {"entropy", mean(kEntropy)},
          {"vf_loss_coeff", now[kValueCoeff]},
          {"entropy_coeff", now[kEntropyCoeff]},
          {"value_mean", statistics(self.value_moments).first},
          {"advantage_mean", advantage},
          {"advantage_std", std::sqrt(advantage_variance)},
          {"return_mean", target},
          {"return_std", std::sqrt(target_variance)},
          {"explained_variance",
           taught_variance > 0.0 ? 1.0 - advantage_variance / taught_variance : std::nan("")},
          {"approx_kl", mean(kApproxKl)},
          {"clip_fraction", mean(kClipped)},
          {"grad_norm", record.norm_sum / std::max(record.steps, 1.0)},
          {"learning_rate", now[kLr]},
          {"updates", record.steps},
          {"empty_minibatches", record.empty}};
}

}  // namespace wd
