// bc_test.cpp: the loss and the gradient of behavior cloning, by formulas in double and finite differences;
// and that rings hold masks of choices as they were recorded.
#include <cmath>
#include <functional>

#include "src/recorded/recording.h"
#include "tests/algorithm/record.h"
#include "wd/algorithms.h"
#include "wd/replay.h"

namespace wd::bc_test {
namespace {

constexpr double kEntropy = 0.1;

struct Cloned {
  const char* name;
  ActionSpace action;
  bool masks = false, squashed = false;
};

// The parameters of a policy in double, which can be moved.
struct Numbers {
  const Policy& policy;
  at::Tensor flat;

  at::Tensor operator()(const std::string& name) const {
    for (const NamedTensor& p : policy.named_parameters())
      if (p.name == name)
        return flat.as_strided(p.tensor.sizes(), p.tensor.strides(), p.tensor.storage_offset());
    throw std::runtime_error("no " + name);
  }
};

// Mean over the rows that count of -log pi - kEntropy * entropy.
double loss_of(const Cloned& c, const Numbers& weights, const Batch& batch) {
  const at::Tensor x = at::tanh(
      at::linear(batch.observation.to(at::kDouble), weights("layers.0.weight"), weights("layers.0.bias")));
  const at::Tensor out = at::linear(x, weights("policy_head.weight"), weights("policy_head.bias"));
  at::Tensor log_prob = at::zeros({out.size(0)}, at::kDouble), entropy = log_prob.clone();
  if (c.action.is_continuous()) {
    at::Tensor action = batch.action.to(at::kDouble);
    if (c.squashed) action = action.clamp(-1.0 + 0x1p-22, 1.0 - 0x1p-22);
    const at::Tensor log_std = weights("log_std"), u = c.squashed ? at::atanh(action) : action,
                     z = (u - out) / log_std.exp(),
                     slope = c.squashed ? at::log1p(-action * action) : at::zeros_like(action);
    const double half_log = 0.5 * std::log(2.0 * M_PI);
    log_prob = (-0.5 * z * z - log_std - half_log - slope).sum(1);
    entropy = (log_std + half_log + 0.5 + slope).sum(1);
    // Of a squashed Gaussian the estimate at the action moves with its mean: its gradient is not that of this
    // number, so such a case has no entropy.
    if (c.squashed) entropy.zero_();
  } else {
    std::int64_t first = 0;
    for (std::size_t h = 0; h < c.action.heads.size(); first += c.action.heads[h++]) {
      const std::int64_t n = c.action.heads[h];
      at::Tensor logits = out.narrow(1, first, n);
      if (c.masks) logits = logits.masked_fill(batch.action_mask.narrow(1, first, n) == 0, -1e30);
      const at::Tensor logs = at::log_softmax(logits, 1);
      log_prob +=
          logs.gather(1, batch.action.narrow(1, static_cast<std::int64_t>(h), 1).to(at::kLong)).squeeze(1);
      entropy -= (logs.exp() * logs).sum(1);
    }
  }
  const at::Tensor counts = batch.mask.to(at::kDouble);
  return (((-log_prob - kEntropy * entropy) * counts).sum() / counts.sum()).item<double>();
}

class Clones : public testing::TestWithParam<Cloned> {};

TEST_P(Clones, LossAndGradientAreThoseOfTheFormula) {
  const Cloned& c = GetParam();
  Spec spec;
  spec.roles = {{.name = "agent",
                 .count = kAgents,
                 .observation = {{"o", kObservation}},
                 .action = c.action,
                 .action_mask = c.masks}};
  spec.time_limit = kTimeLimit;
  PolicySettings settings;
  settings.name = "agent";
  settings.algorithm = BcSettings();
  auto& bc = settings.algorithm.as<BcSettings>();
  bc.replay.batch_size = 4 * kEnvs;
  bc.replay.replay_ratio = 4.0 / kSteps;  // one update
  bc.entropy_coeff = c.squashed ? 0.0 : kEntropy;
  bc.clip_grad_norm = false;
  settings.model.fc_dims = {5};
  settings.model.activation = kTanh;
  settings.model.distribution = c.squashed ? kSquashedGaussianActions : kGaussianActions;

  Trajectory trajectory({spec, Cast::of_roles(spec, {"agent"}, {0}), kSteps, kEnvs});
  PolicyBuffers& buffers = trajectory.policies()[0];
  Draws draws(8);
  fill_trajectory(draws, trajectory, false);
  Policy policy(buffers, settings.model, 0, kSeed, kChunkRows, {}, kFp32, PolicyOutput::kDistribution);
  for (int t = 0; t < kSteps; ++t)
    policy.act(buffers, t, {.seed = kSeed, .step = static_cast<std::uint64_t>(t)});
  if (c.squashed) buffers.action.mul_(1.5).clamp_(-1.0, 1.0);  // not all of them can be taken
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / concat("bc_", c.name);
  std::filesystem::remove_all(folder);
  RecordingWriter(folder, buffers, {}, kSteps, 3000).append(kSteps);
  const Recording recording(folder);
  EXPECT_GT(recording.parts(), 1);

  const AlgorithmContext context{
      .policies = {&policy, 1}, .trajectory = trajectory, .seed = kSeed, .recorded = &recording};
  ReplaySettings ring;
  ring.batch_size = bc.replay.batch_size;
  Replay replay(context, ring, 0.0, 1.0);
  TrainingClock clock({});
  clock.set(0, 0);
  const Batch batch = replay.draw(clock, 0, nullptr).now;
  EXPECT_GT((batch.mask == 0).sum().item<std::int64_t>(), 0) << "some rows are no transitions";
  if (c.masks) {
    // Entry e C + slot was played in replica e at this step.
    const at::Tensor entry = replay.draw(clock, 0, nullptr).entry;
    for (std::int64_t unit = 0; unit < entry.size(0); ++unit) {
      const std::int64_t e = entry[unit].item<std::int64_t>() / kSteps,
                         t = entry[unit].item<std::int64_t>() % kSteps;
      EXPECT_TRUE(at::equal(batch.action_mask.narrow(0, unit * kAgents, kAgents), buffers.action_mask[t][e]));
    }
  }
  Numbers weights{policy, policy.parameters().to(at::kDouble)};
  const double expected = loss_of(c, weights, batch);

  Learner learner({&policy, 1}, trajectory, 0, settings, kSeed, {}, &recording);
  learner.enter(0);
  prepare({&learner, 1});
  ASSERT_TRUE(update({&learner, 1}, clock));
  double loss = 0.0;
  for (const auto& [name, value] : learner.algorithm().metrics()) {
    if (name == "total_loss") loss = value;
    if (name == "updates") {
      EXPECT_EQ(value, 1.0);
    }
  }
  EXPECT_NEAR(loss, expected, 1e-5 * std::abs(expected) + 1e-6);

  at::Tensor gradient;  // from Adam's first moment after one step, 0.1 of it
  for (const NamedTensor& named : learner.algorithm().state())
    if (named.name == "first_moment") gradient = named.tensor.to(at::kDouble) / 0.1;
  ASSERT_EQ(gradient.numel(), weights.flat.numel());
  for (const NamedTensor& p : policy.named_parameters()) {
    for (std::int64_t i = 0; i < p.tensor.numel(); ++i) {
      // Parameters are contiguous, but for padding behind rows.
      const std::int64_t row = p.tensor.dim() == 2 ? i / p.tensor.size(1) : 0,
                         column = p.tensor.dim() == 2 ? i % p.tensor.size(1) : i;
      const std::int64_t at = p.tensor.storage_offset() +
                              (p.tensor.dim() == 2 ? row * p.tensor.stride(0) + column * p.tensor.stride(1)
                                                   : column * p.tensor.stride(0));
      double* const weight = weights.flat.data_ptr<double>() + at;
      constexpr double kStep = 1e-5;
      const double before = *weight;
      *weight = before + kStep;
      const double above = loss_of(c, weights, batch);
      *weight = before - kStep;
      const double slope = (above - loss_of(c, weights, batch)) / (2.0 * kStep);
      *weight = before;
      EXPECT_NEAR(gradient[at].item<double>(), slope, 2e-5 * std::max(1.0, std::abs(slope)))
          << p.name << ' ' << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Clones,
                         testing::Values(Cloned{"choices", ActionSpace::discrete({4})},
                                         Cloned{"masked_heads", ActionSpace::discrete({3, 4}), true},
                                         Cloned{"gaussian", ActionSpace::box(2, -1.0f, 1.0f)},
                                         Cloned{"squashed", ActionSpace::box(2, -1.0f, 1.0f), false, true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wd::bc_test
