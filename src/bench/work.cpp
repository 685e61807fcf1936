// work.cpp: sums over layers and rows.
#include "src/bench/work.h"

#include "src/rollout/minibatches.h"
#include "wd/network.h"

namespace wd::bench {
namespace {

// Bytes per step of one replica. The tensor is [T or T + 1, E, ...].
double row_bytes(const at::Tensor& tensor) {
  if (!tensor.defined()) return 0.0;
  return static_cast<double>(tensor.nbytes()) / static_cast<double>(tensor.size(0) * tensor.size(1));
}

// Bytes of the policy's buffers that these phases use. The environment writes what policies share once, for
// the first of them; every policy reads it.
double row_bytes(const Trajectory& trajectory, const PolicyBuffers& buffers, unsigned phases) {
  double sum = 0.0;
  for (const BufferField& field : buffer_fields()) {
    const bool elsewhere = phases == BufferField::kEnvironment && is_shared(field, buffers) &&
                           &buffers != &trajectory.policies().front();
    if ((field.phases & phases) != 0 && !elsewhere) sum += row_bytes(field.of(buffers));
  }
  return sum;
}

// Bytes of one step of one replica that an epoch reads or writes. A copy is written and read again.
double loss_bytes(const Trajectory& trajectory, const PolicyBuffers& buffers, const TrainingShape& shape,
                  bool copied) {
  if (!copied) return row_bytes(trajectory, buffers, BufferField::kLoss);
  double sum = 0.0;
  for (const BufferField& field : buffer_fields())
    if ((field.phases & BufferField::kLoss) != 0)
      sum += 3.0 * Minibatches::copied_part(field, shape.steps_together) * row_bytes(field.of(buffers));
  return sum;
}

// Networks whose operations are counted. The counts are the same on all devices.
std::vector<std::unique_ptr<Network>> networks(const PolicyBuffers& buffers, const PolicySettings& settings) {
  std::vector<std::unique_ptr<Network>> all;
  for (const auto& make : make_networks(buffers, settings.model, settings.algorithm->traits().output, {},
                                        kFp32, {}, settings.algorithm->traits().mixer))
    all.push_back(make());
  return all;
}

bool keeps_activations(const PolicyBuffers& buffers, const PolicySettings& settings) {
  return buffers.activations != nullptr || settings.algorithm->traits().keeps_activations == kReuseYes;
}

// Bytes that the rollout writes and the update reads.
double activation_bytes(const PolicyBuffers& buffers, const PolicySettings& settings) {
  if (!keeps_activations(buffers, settings)) return 0.0;
  double floats = 0.0;
  for (const auto& network : networks(buffers, settings))
    floats += static_cast<double>(network->activation_size());
  return 4.0 * buffers.num_agents * floats;
}

}  // namespace

Work environment_work(const Trajectory& trajectory) {
  Work work;
  for (const PolicyBuffers& b : trajectory.policies())
    work.bytes += row_bytes(trajectory, b, BufferField::kEnvironment);
  return work;
}

Work random_play_work(const Trajectory& trajectory) {
  Work work;
  for (const PolicyBuffers& b : trajectory.policies())
    work.bytes += row_bytes(b.action_mask) + row_bytes(b.action);
  return work;
}

Work inference_work(const Trajectory& trajectory, const Config& config) {
  Work work;
  const double last = 1.0 / trajectory.steps();
  for (std::size_t p = 0; p < config.policies.size(); ++p) {
    const PolicyBuffers& b = trajectory.policies()[p];
    const auto nets = networks(b, config.policies[p]);
    for (const auto& network : nets) work.flop += network->forward_flop();
    work.flop += last * nets.back()->forward_flop();
    work.bytes += row_bytes(trajectory, b, BufferField::kInference) +
                  last * (row_bytes(b.observation) + row_bytes(b.value)) +
                  activation_bytes(b, config.policies[p]);
  }
  return work;
}

Work update_work(const Trajectory& trajectory, const Config& config) {
  Work work;
  for (std::size_t p = 0; p < config.policies.size(); ++p) {
    const PolicyBuffers& b = trajectory.policies()[p];
    const PolicySettings& settings = config.policies[p];
    work.bytes += row_bytes(trajectory, b, BufferField::kReturns);
    if (!settings.to_train) continue;
    const TrainingShape shape{.num_envs = config.trainer.num_envs,
                              .rollout_steps = trajectory.steps(),
                              .steps_together = settings.model.steps_together(trajectory.steps()),
                              .num_agents = b.num_agents};
    const AlgorithmTraits traits = settings.algorithm->traits();
    const std::int64_t share = shape.share(traits.row_limit), all = shape.share(0);
    const bool copied = Minibatches::gathers(traits.minibatches, b.state_size > 0, share, all);
    // An epoch has a part of the rows.
    double epochs = traits.epochs * static_cast<double>(share) / static_cast<double>(all);
    if (copied) epochs *= Minibatches::part_of_rows(trajectory.spec(), b, traits);
    work.bytes += epochs * loss_bytes(trajectory, b, shape, copied);
    work.bytes += activation_bytes(b, settings);
    for (const auto& network : networks(b, settings)) {
      const double forward = keeps_activations(b, settings) ? 0.0 : network->forward_flop();
      work.flop += epochs * (forward + network->backward_flop());
    }
  }
  return work;
}

}  // namespace wd::bench
