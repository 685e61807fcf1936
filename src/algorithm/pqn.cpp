// pqn.cpp: parallelized Q-network (Gallici et al. 2024, arXiv 2407.04811). The replicas act epsilon-greedily
// on Q(s, a). A rollout's targets are the lambda-returns
//   G_t = r_t + gamma ((1 - lambda) max_a Q(s_{t+1}, a) + lambda G_{t+1}),
// computed backwards from max_a Q of its last observation, with Q as it was when it acted. The maximum is
// over legal choices; it is 0 after a termination, and replaces G_{t+1} at a truncation. Then epochs of
// gradient descent over minibatches on (Q(s_t, a_t) - G_t)^2 / 2. As values are max_a Q, G is the
// advantage of generalized advantage estimation plus the value. Differences from the paper's code: Adam
// in place of RAdam; each of several heads takes its best choice, and Q is the sum over heads.
//
// PQN-VDN and PQN-QMIX are the same for teams: all agents of the policy in one replica, whose rewards are
// added up, and whose value Q_tot is mixed from those of its agents' actions (wd/kernels/team.h).
#include <ATen/ATen.h>

#include <array>
#include <cmath>

#include "kernels/normalize.h"
#include "src/algorithm/mixing.h"
#include "src/algorithm/returns_args.h"
#include "src/base/join.h"
#include "src/device/device.h"
#include "wd/algorithms.h"
#include "wd/coefficients.h"
#include "wd/kernels/td.h"
#include "wd/policy_pass.h"
#include "wd/rollout_algorithm.h"

namespace wd {

namespace {

SumNames q_sums() { return {.names = {nullptr, "the loss of the values", "the value", "the target"}}; }

class Pqn final : public RolloutAlgorithm {
 public:
  Pqn(const AlgorithmContext& context, const PqnSettings& settings);

  void begin_rollout(const TrainingClock& clock) override { epsilon_.update(clock); }
  const ExplorationNumbers* exploration() const override { return epsilon_.numbers(); }
  void begin_prepare() override;
  void end_prepare() override { std::exchange(sum_arrives_, {})(); }
  void begin_update(const TrainingClock& clock) override;
  std::vector<std::pair<std::string, double>> metrics() const override;

 private:
  enum Coefficient { kLr, kMaxGradNorm };

  at::Tensor accumulate(const Batch& batch, const std::function<bool()>& should_stop) override;
  void team_returns(ReturnsArgs args);

  const PqnSettings& settings_;
  const Mixing mixing_;
  Lanes lanes_;
  Coefficients coefficients_;
  ExplorationSchedules epsilon_;
  at::Tensor moments_;                 // [3, kNumMoments] float64: of targets, values and their differences
  std::function<void()> sum_arrives_;  // waits for the moments whose sum was begun
  // Of teams: [T + 1, E] values; [T, E] rewards, advantages and targets; uint8: mask, and zeros.
  struct {
    at::Tensor value, reward, advantage, target, mask, zeros;
    std::unique_ptr<Lanes> lanes;
  } team_;
};

Pqn::Pqn(const AlgorithmContext& context, const PqnSettings& settings)
    : RolloutAlgorithm(context, settings, q_sums(), settings.adam_epsilon),
      settings_(settings),
      mixing_(policy_, settings.mixer),
      lanes_({{&policy_.model(), ModelUse::kLearns}}, kNumTdSums,
             mixing_.with_memory({{"output_grad", policy_.model().network(0).outputs(), true}}), device_),
      coefficients_(std::array{&std::as_const(settings.lr), &std::as_const(settings.max_grad_norm)}, device_),
      epsilon_(settings.epsilon, 0.0, 0.0, device_),
      moments_(at::zeros({3, kNumMoments}, buffers_.value.options().dtype(at::kDouble))) {
  if (!mixing_.is_on()) return;
  const std::int64_t T = trajectory_.steps(), E = trajectory_.num_envs();
  team_.value = at::zeros({T + 1, E}, buffers_.value.options());
  team_.reward = at::zeros({T, E}, team_.value.options());
  team_.advantage = at::zeros_like(team_.reward);
  team_.target = at::zeros_like(team_.reward);
  team_.mask = at::zeros({T, E}, buffers_.mask.options());
  team_.zeros = at::zeros_like(team_.mask);
  team_.lanes = std::make_unique<Lanes>(std::vector<ModelUse>{{&policy_.model(), ModelUse::kForward}}, 0,
                                        std::vector<RowMemory>{{"q", 1}}, device_);
}

// Every agent's target is that of its team.
void Pqn::team_returns(ReturnsArgs args) {
  const Queue queue = current_queue(device_);
  const int A = buffers_.num_agents;
  const std::int64_t rows = buffers_.value.numel();
  const Blocks blocks = Blocks::of_inference(rows, device_.is_cuda(), A);
  team_.lanes->run(blocks, [&](Lane& lane, std::int64_t begin, std::int64_t end) {
    mixing_.value(lane, policy_.mixer_input(buffers_, begin, end), end - begin,
                  {.value = buffers_.value.const_data_ptr<float>() + begin,
                   .in_game = buffers_.active.const_data_ptr<std::uint8_t>() + begin,
                   .team_value = team_.value.mutable_data_ptr<float>() + begin / A});
  });
  const TeamRewardArgs rewards{.teams = team_.reward.numel(),
                               .agents = A,
                               .reward = args.reward,
                               .mask = args.mask,
                               .team_reward = team_.reward.mutable_data_ptr<float>(),
                               .team_mask = team_.mask.mutable_data_ptr<std::uint8_t>()};
  team_reward(queue, rewards);
  args.num_agents = 1;
  args.waits = nullptr;  // a team has one side
  args.reward = rewards.team_reward;
  args.value = team_.value.const_data_ptr<float>();
  args.agent_terminated = team_.zeros.const_data_ptr<std::uint8_t>();
  args.advantage = team_.advantage.mutable_data_ptr<float>();
  args.target = team_.target.mutable_data_ptr<float>();
  args.mask = rewards.team_mask;
  returns(queue, args);
  buffers_.target.copy_(team_.target.unsqueeze(2).expand_as(buffers_.target));
}

void Pqn::begin_prepare() {
  ReturnsArgs args = returns_args(trajectory_, index_);
  args.method = ReturnMethod::kGae;
  args.gamma = static_cast<float>(settings_.gamma);
  args.lambda = static_cast<float>(settings_.lambda);
  args.reward_scale = static_cast<float>(settings_.reward_scale);
  if (mixing_.is_on()) {
    team_returns(args);
    moments_of(team_.target, team_.mask, moments_[0]);
    moments_of(team_.value, team_.mask, moments_[1]);
    moments_of(team_.advantage, team_.mask, moments_[2]);
  } else {
    returns(current_queue(device_), args);
    moments_of(buffers_.target, moments_[0]);
    moments_of(buffers_.value, moments_[1]);
    moments_of(buffers_.advantage, moments_[2]);
  }
  sum_arrives_ = group_.begin_all_reduce(moments_);
}

void Pqn::begin_update(const TrainingClock& clock) {
  coefficients_.update(clock);
  start_epochs(coefficients_.value(kLr),
               settings_.clip_grad_norm ? coefficients_.value(kMaxGradNorm) : nullptr, nullptr);
}

// Returns the sums by TdSum.
at::Tensor Pqn::accumulate(const Batch& batch, const std::function<bool()>& should_stop) {
  const Queue queue = current_queue(device_);
  return lanes_.run(
      policy_.blocks(batch),
      [&](Lane& lane, std::int64_t begin, std::int64_t end) {
        const PolicyPass pass = policy_.forward(lane, batch, begin, end);
        const at::Tensor& output_grad = lane.rows("output_grad");
        ValueLoss loss{.layout = policy_.action_layout(),
                       .output = pass.computed.output,
                       .action = at_row<const std::int32_t>(batch.action, begin),
                       .target = rows_of<const float>(batch.target, begin),
                       .mask = at_row<const std::uint8_t>(batch.mask, begin),
                       .huber = 0.0f,
                       .output_grad = rows_of<float>(output_grad),
                       .row_sums = at_row<float>(lane.row_sums())};
        if (mixing_.is_on()) {
          loss.target.stride *= buffers_.num_agents;  // one of the rows of a team
          return mixing_.learn(lane, pass, batch, begin, end, loss);
        }
        td_loss(queue, {.rows = pass.rows, .loss = loss});
        policy_.backward(lane, pass, output_grad, {}, {});
      },
      should_stop);
}

std::vector<std::pair<std::string, double>> Pqn::metrics() const {
  const std::vector<double> sums = learned_.sums();
  const auto [target, target_variance] = statistics_of(moments_[0]);
  const double unexplained = statistics_of(moments_[2]).second, loss = ratio(sums[kTdLoss], sums[kTdCount]);
  std::vector<std::pair<std::string, double>> all = {
      {"total_loss", loss},
      {"value_loss", loss},
      {"value_mean", statistics_of(moments_[1]).first},
      {"return_mean", target},
      {"return_std", std::sqrt(target_variance)},
      {"explained_variance", target_variance > 0.0 ? 1.0 - unexplained / target_variance : std::nan("")},
      {"epsilon", epsilon_.epsilon()},
      {"learning_rate", coefficients_.value().cpu()[kLr].item<double>()},
      {"overestimation",
       mixing_.is_on() ? std::nan("") : overestimation(settings_.gamma, settings_.reward_scale)}};
  return joined(std::move(all), optimizer_metrics());
}

}  // namespace

PqnSettings::PqnSettings() {
  lr = 5e-4;
  epsilon.points = {{0.0, 1.0}, {100'000.0, 0.05}};
}

// Without a target network, layer normalization is what keeps the values from growing without limit (section
// 3 of the paper).
void PqnSettings::suit(ModelSettings& model) const { model.layer_norm = true; }

void PqnSettings::describe(Fields& field) {
  describe_lr(field);
  field("epsilon", epsilon, {0, 1}, "probability that an agent draws its action from the legal choices");
  field("gamma", gamma, {0, 1}, "discount per step");
  field("lambda", lambda, {0, 1}, "of the lambda-returns; 0: one step, 1: the whole rollout's return");
  field("reward_scale", reward_scale, above(0, 1e9), "rewards are multiplied by it before learning");
  field("num_epochs", num_epochs, {1, 1000}, "passes over each rollout");
  field("num_minibatches", num_minibatches, {1, 65'536}, "optimizer steps per pass");
  describe_max_rows(field, max_rows);
  describe_optimizer(field);
  describe_mixer(field, mixer);
}

double PqnSettings::bytes(const WorkerShape& worker) const {
  if (mixer.kind == Mixer::kNone) return 0.0;
  const auto T = static_cast<double>(worker.rollout_steps);
  return worker.replicas * ((T + 1.0) * sizeof(float) + T * (3.0 * sizeof(float) + 2.0));
}

void PqnSettings::check(const TrainingShape& shape, const Problem& problem) const {
  check_minibatches(num_minibatches, shape, problem, max_rows);
}

std::int64_t PqnSettings::wanted_rollout(std::int64_t time_limit) const {
  return horizons(1.0 / (1.0 - gamma * lambda), time_limit);
}

std::unique_ptr<Algorithm> PqnSettings::make(const AlgorithmContext& context) const {
  require_minibatches(num_minibatches, context, name(), max_rows);
  return std::make_unique<Pqn>(context, *this);
}

WD_REGISTER_ALGORITHM(PqnSettings);
WD_REGISTER_ALGORITHM(PqnVdnSettings);
WD_REGISTER_ALGORITHM(PqnQmixSettings);

}  // namespace wd
