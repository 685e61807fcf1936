// replay_algorithm.cpp: the updates of an iteration, each from a batch of the replay memory.
#include "wd/replay_algorithm.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/gather.h"
#include "src/algorithm/measure.h"
#include "src/base/join.h"
#include "src/config/compatible.h"
#include "src/device/device.h"
#include "wd/error.h"
#include "wd/rollout_algorithm.h"
#include "wd/tensor_rows.h"

namespace wd {

ReplayAlgorithm::Plan ReplayAlgorithm::plan_of_policy(const AlgorithmContext& context,
                                                      const OffPolicySettings& settings, SumNames sums,
                                                      const Schedule& epsilon) {
  Policy& policy = context.policy();
  return {.model = policy.model(),
          .sums = std::move(sums),
          .owner = concat("policy '", policy.name(), "'"),
          .named = policy.named_parameters(),
          .lr = settings.lr,
          .epsilon = epsilon};
}

ReplayAlgorithm::ReplayAlgorithm(const AlgorithmContext& context, const OffPolicySettings& settings,
                                 Plan plan)
    : policy_(context.policy()),
      index_(context.index),
      group_(context.group),
      device_(policy_.device()),
      to_train_(context.to_train),
      seed_(context.seed),
      learned_(plan.model, std::move(plan.sums), settings.adam_epsilon, context.group, std::move(plan.owner),
               std::move(plan.named)),
      replay_(context, settings.replay, settings.gamma, settings.reward_scale,
              settings.traits().mixer.kind != Mixer::kNone),
      exploration_(plan.epsilon, plan.deviation, plan.damping, device_),
      error_(at::zeros({replay_.rows()}, policy_.parameters().options())),
      batch_steps_(replay_.shape().batch()),
      updates_(replay_.batches()),
      gamma_(settings.gamma),
      reward_scale_(settings.reward_scale),
      limits_(settings.clip_grad_norm),
      burn_in_lanes_({{&policy_.model(), ModelUse::kForward}}, 0, {}, device_),
      coefficients_(std::array{&plan.lr, &settings.max_grad_norm, &settings.replay.importance_exponent},
                    device_) {
  Usage usage;
  usage.uses.add(has_state() ? Use::kState : Use::kNoState);
  add_algorithm(usage, settings);
  require_compatible(policy_.name(), usage);
}

int ReplayAlgorithm::stage(std::int64_t iteration) const {
  return !to_train_ || !replay_.learns(iteration) ? kFill : 1 + variant(iteration);
}

void ReplayAlgorithm::begin_update(const TrainingClock& clock) {
  coefficients_.update(clock);
  if (to_train_) replay_.append(clock);
  learned_.begin_update(coefficients_.value(kLr), max_grad_norm(), nullptr, failed_);
  clock_ = clock;
  time_ = clock.time();
  update_ = 0;
}

void ReplayAlgorithm::begin_step(const TrainingClock& clock, const std::function<bool()>& should_stop) {
  before_update(update_);
  batch_ = &replay_.draw(clock, static_cast<int>(update_),
                         coefficients_.rounded().const_data_ptr<float>() + kImportance);
  if (batch_->burn_in > 0) burn_in(*batch_);
  const at::Tensor totals = accumulate(*batch_, should_stop);
  replay_.set_priorities(clock, error_);
  learned_.begin_step(totals, should_stop ? std::optional(should_stop()) : std::nullopt);
}

at::Tensor ReplayAlgorithm::run(Lanes& lanes, const ReplayBatch& batch, const Lanes::Pass& pass,
                                const std::function<bool()>& should_stop) const {
  const Blocks blocks = policy_.blocks(batch.now);
  if (batch.steps > 0)
    lanes.reserve(Blocks::of_size(batch.rows_of_all(blocks.rows), batch.rows_of_all(blocks.max_rows),
                                  device_.is_cuda()));
  return lanes.run(blocks, pass, should_stop);
}

// A block's rows of a step are one after another, so the first steps of its windows are too.
NetworkInput ReplayAlgorithm::window_input(const ReplayBatch& batch, std::int64_t begin, std::int64_t end,
                                           int steps, bool of_critic) const {
  const std::int64_t length = batch.now.sequences.length, from = batch.rows_of_all(begin),
                     to = from + (end - begin) / length * steps;
  NetworkInput input =
      of_critic ? policy_.critic_input(batch.all, from, to) : policy_.input(batch.all, from, to);
  input.state = batch.all.state.slice(0, begin / length, end / length);
  input.restarted = batch.all.restarted.slice(0, from, to);
  return input;
}

NetworkInput ReplayAlgorithm::next_input(const ReplayBatch& batch, std::int64_t begin, std::int64_t end,
                                         bool of_critic) const {
  if (batch.steps > 0) return window_input(batch, begin, end, batch.steps, of_critic);
  return of_critic ? policy_.critic_input(batch.next, begin, end) : policy_.input(batch.next, begin, end);
}

std::vector<RowMemory> ReplayAlgorithm::memory_of_next(std::vector<RowMemory> rows) const {
  for (RowMemory& memory : rows) memory.columns = round_up(memory.columns, 4);  // make_output()
  return has_state() ? rows : std::vector<RowMemory>();
}

at::Tensor ReplayAlgorithm::at_next(const ReplayBatch& batch, std::int64_t begin, std::int64_t end,
                                    const at::Tensor& output, const Lane& lane, const char* name,
                                    int k) const {
  if (batch.steps == 0) return output;
  const at::Tensor &memory = lane.rows(name, k), like = output.narrow(0, 0, end - begin),
                   rows = memory.as_strided(like.sizes(), like.strides(), memory.storage_offset());
  const std::int64_t agents = replay_.agents();
  GatherArgs args{.index = at_row<const std::int64_t>(batch.successor, begin / agents),
                  .rows = (end - begin) / agents};
  args.add(output.const_data_ptr(), rows.mutable_data_ptr(), agents * output.stride(0) * sizeof(float));
  gather(current_queue(device_), args);
  return rows;
}

// No gradient: these lanes only run forward. A value beside the actor needs no state here.
void ReplayAlgorithm::burn_in(const ReplayBatch& batch) {
  const std::int64_t length = batch.now.sequences.length;
  const Network& network = policy_.model().network(0);
  run(burn_in_lanes_, batch, [&](Lane& lane, std::int64_t begin, std::int64_t end) {
    NetworkInput input = window_input(batch, begin, end, batch.burn_in, false);
    input.state = input.state.narrow(1, 0, network.state_size());
    input.next_state =
        batch.now.state.slice(0, begin / length, end / length).narrow(1, 0, network.state_size());
    network.forward(input, lane.of(network));
  });
}

bool ReplayAlgorithm::end_step() {
  if (!learned_.end_step()) return false;
  after_update(update_);
  update_ = learned_.is_stopped() ? updates() : update_ + 1;
  return true;
}

std::vector<NamedTensor> ReplayAlgorithm::state() const { return joined(learned_.state(), replay_.state()); }

double ReplayAlgorithm::mean_of_sum(int sum) const {
  const std::vector<double> sums = learned_.sums();
  return ratio(sums[static_cast<std::size_t>(sum)], sums[0]);
}

std::vector<std::pair<std::string, double>> ReplayAlgorithm::optimizer_metrics() const {
  const StepRecord record = learned_.record();
  return {{"grad_norm", ratio(record.norm_sum, record.steps)},
          {"learning_rate", coefficients_.value().cpu()[kLr].item<double>()},
          {"updates", record.steps},
          {"empty_minibatches", record.empty},
          {"update_ratio", learned_.step_ratio()},
          {"dormant_share", dormant_share_of_policy()},
          {"saturated_share", saturated_share_of_policy()}};
}

double ReplayAlgorithm::saturated_share_of_policy() const {
  return updates() == 0 || !has_state() ? std::nan("") : saturated_share(policy_, batch_->now, group_);
}

double ReplayAlgorithm::dormant_share_of_policy() const {
  if (updates() == 0 || has_state()) return std::nan("");
  const std::int64_t rows = sampled_rows(replay_.rows(), replay_.agents(), group_);
  return dormant_share(probes_of(policy_, batch_->now, rows), batch_->now.mask, rows, group_);
}

std::string ReplayAlgorithm::warning_of(double value, double target, double paid) const {
  constexpr double kBeyond = 1.5;  // values that are learned well exceed the limit a little now and then
  if (updates() == 0 || gamma_ == 1.0) return {};
  const double reward = replay_.largest_reward(group_),
               limit = (reward * reward_scale_ + paid) / (1.0 - gamma_);
  const double largest = std::max(std::abs(value), std::abs(target));
  if (!(reward > 0.0) || !(largest > kBeyond * limit)) return {};
  return concat(
      "policy '", policy_.name(), "': values of ", largest, " cannot be true: rewards of at most ", reward,
      ", with reward_scale = ", reward_scale_, " and gamma = ", gamma_, ", allow ", limit,
      ": lower the learning rate of the values, let targets follow more slowly, or limit the norm of the "
      "gradient (clip_grad_norm)");
}

std::vector<std::pair<std::string, double>> ReplayAlgorithm::batch_metrics() const {
  const double unknown = std::nan("");
  const bool fills = to_train_ && clock_, learns = fills && updates() > 0;
  const std::int64_t iteration = fills ? clock_->iteration() : 0;
  std::vector<double> errors = {unknown, unknown};
  double counted = unknown, beyond = unknown;
  if (learns) {
    const at::Tensor& mask = batch_->now.mask;
    errors = quantiles_of(error_.abs(), mask, {0.5, 0.9}, group_);
    const std::int64_t units = std::max<std::int64_t>(kSampledRows / replay_.agents(), 1);
    const Replay::Known known = replay_.known_returns(iteration, units, group_);
    if (const at::Tensor values = played_values(known.batch, known.value.size(0)); values.defined())
      beyond = mean_of(values[0] - known.value, known.batch.mask, group_);
    counted = mask.cpu().to(at::kDouble).mean().item<double>();
  }
  return {{"memory_size", fills ? static_cast<double>(replay_.size(iteration)) : unknown},
          {"memory_age", learns ? replay_.mean_age(iteration) : unknown},
          {"counted_share", counted},
          {"td_error_median", errors[0]},
          {"td_error_p90", errors[1]},
          {"overestimation", beyond}};
}

void OffPolicySettings::check(const TrainingShape& shape, const Problem& problem) const {
  replay.check(shape, problem);
}

AlgorithmTraits OffPolicySettings::traits() const {
  return {.learns_from = LearnsFrom::kEither,
          .learns_quantiles = true,
          .burn_in = replay.burn_in,
          .short_iterations = true,
          .epochs = static_cast<int>(std::max(std::lround(replay.replay_ratio), 1L)),
          .replicas_unit = replay.batch_size,
          .max_batch = std::max<std::int64_t>(replay.buffer_size / 3, 1)};
}

UsualShape OffPolicySettings::usual_shape(std::int64_t) const {
  constexpr std::int64_t kReplicas = 8;
  const double steps = std::ceil(static_cast<double>(replay.batch_size) / (replay.replay_ratio * kReplicas));
  return {.num_envs = kReplicas, .rollout_steps = static_cast<std::int64_t>(std::clamp(steps, 8.0, 1e6))};
}

double OffPolicySettings::bytes(const WorkerShape& worker) const {
  return Replay::bytes(worker, replay) + Replay::rows(worker, replay) * sizeof(float);
}

double OffPolicySettings::bytes_of_target(const WorkerShape& worker) const {
  return model_bytes(
      make_networks(worker.layout, worker.model, traits().output, {}, worker.precision, {}, traits().mixer),
      0, worker.precision, false);
}

}  // namespace wd
