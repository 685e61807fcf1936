// rollout_algorithm.cpp: epochs over the minibatches of a rollout, and what follows from the shape of
// training.
#include "wd/rollout_algorithm.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "kernels/normalize_body.h"
#include "kernels/reduce.h"
#include "src/algorithm/measure.h"
#include "src/base/join.h"
#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "src/rollout/minibatches.h"
#include "wd/error.h"

namespace wd {
namespace {

TrainingShape shape_of(const AlgorithmContext& context) {
  const Trajectory& trajectory = context.trajectory;
  return {.num_envs = std::int64_t{trajectory.num_envs()} * context.group.size(),
          .rollout_steps = trajectory.steps(),
          .time_limit = trajectory.time_limit(),
          .steps_together = std::max(context.policy().sequences(trajectory.steps()).length, 1),
          .num_agents = context.buffers().num_agents};
}

// Why an epoch cannot learn from at most max_rows rows, or nothing if it can.
std::string too_few_rows(std::int64_t max_rows, int num_minibatches, const TrainingShape& shape) {
  if (max_rows == 0 || (max_rows >= shape.least_rows() && num_minibatches <= shape.units(max_rows)))
    return {};
  const std::int64_t units = (num_minibatches + shape.num_envs - 1) / shape.num_envs;  // of each replica
  const std::int64_t steps = units * shape.steps_together;
  return concat("must be 0, for all rows, or at least ", units * shape.least_rows(), ": ", steps,
                steps == 1 ? " step" : " steps", " x ", shape.num_envs, " replicas x ", shape.num_agents,
                shape.num_agents == 1 ? " agent" : " agents",
                num_minibatches > 1 ? concat(", for num_minibatches = ", num_minibatches) : "",
                ": raise it, or lower the number of replicas");
}

}  // namespace

RolloutAlgorithm::RolloutAlgorithm(const AlgorithmContext& context, const AlgorithmSettings& settings,
                                   SumNames sums, double adam_epsilon)
    : policy_(context.policy()),
      trajectory_(context.trajectory),
      index_(context.index),
      buffers_(context.buffers()),
      group_(context.group),
      device_(device_holding(buffers_.value)),
      learned_(policy_.model(), std::move(sums), adam_epsilon, group_,
               concat("policy '", policy_.name(), "'"), policy_.named_parameters()),
      to_train_(context.to_train),
      seed_(context.seed),
      epochs_(settings.traits().epochs),
      minibatches_(std::make_unique<Minibatches>(
          buffers_, trajectory_.steps(), trajectory_.num_envs(), settings.traits().minibatches, group_.rank(),
          policy_.sequences(trajectory_.steps()), shape_of(context).share(settings.traits().row_limit),
          Minibatches::wait_of(trajectory_.spec(), buffers_, settings.traits()))),
      partial_(at::zeros({kNumMoments * num_chunks(buffers_.mask.numel())},
                         buffers_.value.options().dtype(at::kDouble))),
      epoch_start_(at::zeros({static_cast<std::int64_t>(learned_.sums().size())},
                             buffers_.value.options().dtype(at::kDouble))) {}

RolloutAlgorithm::~RolloutAlgorithm() = default;

const double* RolloutAlgorithm::ended_early() const {
  // With several minibatches, something would be learned before the one that shows it.
  const bool shows = to_train_ && !minibatches_->gathers() && policy_.model().network(0).shows_not_finite();
  return shows ? &learned_.live_record()->stopped : nullptr;
}

void RolloutAlgorithm::start_epochs(const double* lr, const double* max_grad_norm, const double* limit) {
  learned_.begin_update(lr, max_grad_norm, limit, failed_);
  epoch_ = minibatch_ = 0;
  done_ = !to_train_;
}

// Computes the gradient of the next minibatch and begins to sum it over ranks.
void RolloutAlgorithm::begin_step(const TrainingClock& clock, const std::function<bool()>& should_stop) {
  if (minibatch_ == 0) {
    learned_.keep_sums_before_step(epoch_start_);
    minibatches_->shuffle(seed_, clock.time(), epoch_);
  }
  const at::Tensor totals = accumulate(minibatches_->gather(minibatch_), should_stop);
  learned_.begin_step(totals, should_stop ? std::optional(should_stop()) : std::nullopt);
  minibatch_ = (minibatch_ + 1) % minibatches_->count();
  if (minibatch_ == 0) ++epoch_;
  done_ = epoch_ == epochs_;
}

// Makes the optimizer's step, unless the limited sum has exceeded its limit; that ends the update (on CUDA
// the remaining steps do nothing).
bool RolloutAlgorithm::end_step() {
  if (!learned_.end_step()) return false;
  done_ = done_ || learned_.is_stopped();
  return true;
}

std::vector<std::pair<std::string, double>> RolloutAlgorithm::optimizer_metrics() const {
  const StepRecord record = learned_.record();
  return joined({{"grad_norm", ratio(record.norm_sum, record.steps)},
                 {"updates", record.steps},
                 {"empty_minibatches", record.empty}},
                diagnosis());
}

std::vector<double> RolloutAlgorithm::last_epoch() const {
  std::vector<double> sums = learned_.sums();
  const at::Tensor before = epoch_start_.cpu();
  for (std::size_t k = 0; k < sums.size(); ++k) sums[k] -= before.const_data_ptr<double>()[k];
  return sums;
}

std::vector<std::pair<std::string, double>> RolloutAlgorithm::diagnosis() const {
  double dormant = std::nan(""), saturated = dormant;
  if (learned_.record().steps > 0.0) {
    const Batch batch = minibatches_->gather(0);
    const std::int64_t rows = sampled_rows(batch.mask.size(0), buffers_.num_agents, group_);
    if (buffers_.state_size > 0)
      saturated = saturated_share(policy_, batch, group_);
    else
      dormant = dormant_share(probes_of(policy_, batch, rows), batch.mask, rows, group_);
  }
  return {
      {"update_ratio", learned_.step_ratio()}, {"dormant_share", dormant}, {"saturated_share", saturated}};
}

// Reads evenly spaced replicas, the same on any number of ranks. Rollouts are short: counting only what ended
// within them would select by outcome.
double RolloutAlgorithm::overestimation(double gamma, double reward_scale) const {
  constexpr std::int64_t kRows = std::int64_t{1} << 16;
  const std::int64_t E = trajectory_.num_envs(), T = trajectory_.length();
  const std::int64_t every = buffers_.mask.numel() * group_.size() / kRows + 1;
  const std::int64_t first = (every - group_.rank() * E % every) % every;
  const auto part = [&](const at::Tensor& rows, std::int64_t from = 0) {
    return rows.narrow(0, from, T).slice(1, std::min(first, E), E, every).cpu();
  };
  const at::Tensor mask = part(buffers_.mask), reward = part(buffers_.reward);
  const auto of_agents = [&](const at::Tensor& flags) {
    return part(flags).ne(0).unsqueeze(2).expand_as(reward).flatten(1);
  };
  const at::Tensor over =
      of_agents(buffers_.terminated).logical_or(part(buffers_.agent_terminated).ne(0).flatten(1));
  const Followed followed =
      returns_followed(reward.flatten(1) * reward_scale, over, over.logical_or(of_agents(buffers_.truncated)),
                       gamma, part(buffers_.value, 1).flatten(1));
  return mean_of(part(buffers_.value).flatten(1) - followed.value, mask.flatten(1), group_);
}

void RolloutAlgorithm::moments_of(const at::Tensor& x, const at::Tensor& mask, const at::Tensor& out) {
  masked_moments(current_queue(device_), x.const_data_ptr<float>(), mask.const_data_ptr<std::uint8_t>(),
                 mask.numel(), partial_.mutable_data_ptr<double>(), out.mutable_data_ptr<double>());
}

std::pair<double, double> statistics_of(const at::Tensor& moments) {
  const at::Tensor host = moments.cpu();
  return {mean_of(host.const_data_ptr<double>()), variance_of(host.const_data_ptr<double>())};
}

double ratio(double sum, double count) { return count > 0.0 ? sum / count : std::nan(""); }

// Three horizons: an advantage weights the temporal difference n steps ahead by (gamma * lambda)^n, so its
// horizon is h = 1 / (1 - gamma * lambda) steps; with n-step returns it is n. In a rollout of k h steps, the
// fraction 1 - (1 - e^-k) / k of all weights is within the rollout: 0.68 for k = 3.
std::int64_t horizons(double horizon, std::int64_t time_limit) {
  // kRounding: in floating point, 1 / (1 - 0.9) is slightly more than 10.
  constexpr double kHorizons = 3.0, kRounding = 1e-9;
  const double steps = std::min(static_cast<double>(time_limit), kHorizons * horizon);
  return static_cast<std::int64_t>(std::ceil(steps * (1.0 - kRounding)));
}

void describe_max_rows(Fields& field, std::int64_t& max_rows) {
  field("max_rows", max_rows, {0, 1e12},
        "rows (agents x steps x replicas) of each rollout that an epoch learns from "
        "at most, drawn anew for each "
        "epoch; rounded down to whole steps, or sequences, of every replica; 0: all");
}

void check_minibatches(int num_minibatches, const TrainingShape& shape,
                       const AlgorithmSettings::Problem& problem, std::int64_t max_rows) {
  if (shape.rollout_steps < 1) return;  // trainer.train_batch_size is wrong
  if (num_minibatches > shape.units()) {
    problem("num_minibatches", std::to_string(num_minibatches),
            shape.steps_together == 1
                ? concat("must be at most trainer.train_batch_size = ", shape.batch())
                : concat("must be at most ", shape.units(),
                         ": minibatches of a network with a state consist of sequences, and ", shape.num_envs,
                         " replicas x ", shape.rollout_steps, " steps are ", shape.units(), " sequences of ",
                         shape.steps_together,
                         " steps: lower it, set a shorter model.sequence_length, or "
                         "raise trainer.num_envs"));
    return;
  }
  if (const std::string reason = too_few_rows(max_rows, num_minibatches, shape); !reason.empty())
    problem("max_rows", std::to_string(max_rows), reason);
}

void require_minibatches(int num_minibatches, const AlgorithmContext& context, const char* algorithm,
                         std::int64_t max_rows) {
  if (!context.to_train) return;
  const auto refuse = [&](const std::string& key, const std::string& value, const std::string& reason) {
    throw UsageError(
        concat("policy '", context.policy().name(), "': ", algorithm, ": ", key, " = ", value, ' ', reason));
  };
  check_minibatches(num_minibatches, shape_of(context), refuse, max_rows);
}

}  // namespace wd
