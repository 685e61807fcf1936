// work.cpp: sums over layers and over rows.
#include "src/bench/work.h"

#include <initializer_list>
#include <numeric>

namespace wd::bench {
namespace {

// Of one step of one replica. Each tensor is [T or T + 1, E, ...].
double row_bytes(const at::Tensor& tensor) {
  if (!tensor.defined()) return 0.0;
  return static_cast<double>(tensor.nbytes()) / static_cast<double>(tensor.size(0) * tensor.size(1));
}

double row_bytes(std::initializer_list<at::Tensor> tensors) {
  double sum = 0.0;
  for (const at::Tensor& tensor : tensors) sum += row_bytes(tensor);
  return sum;
}

double flag_bytes(const Trajectory& trajectory) {
  return row_bytes({trajectory.terminated(), trajectory.truncated(), trajectory.reset_step()});
}

// Widths of a policy's networks: the one that acts, and where the value has a network of its own, that one.
std::vector<std::vector<int>> networks(const PolicyBuffers& buffers, const ModelSettings& model) {
  int columns = buffers.action_space.continuous;
  for (const int n : buffers.action_space.heads) columns += n;
  const auto network = [&](int outputs) {
    std::vector<int> widths = {buffers.observation_size};
    widths.insert(widths.end(), model.fc_dims.begin(), model.fc_dims.end());
    widths.push_back(outputs);
    return widths;
  };
  if (model.separate_value) return {network(columns), network(1)};
  return {network(columns + 1)};
}

// Products of a first layer that reads a table (kernels/table_layer.h), all rows of a step together.
struct TableFlop {
  double forward = 0.0, backward = 0.0;
};
TableFlop table_flop(const PolicyBuffers& b, int width) {
  // The first row's entries of a feature, and one from row to row; as many terms has the gradient: of each place, those of the
  // rows that see the agent before it, and of those that see the agent behind it.
  const double entries = static_cast<double>(b.observation.size(2)) - 1.0 + b.agent.back() - b.agent.front();
  const double shared = b.table.relative + b.table.own + 1;
  return {2.0 * width * (b.table.features * entries + b.table.own * b.num_agents),
          2.0 * width * (b.table.features * entries + shared * b.num_agents)};
}

// Of all rows of a step.
double forward_work(const PolicyBuffers& b, const std::vector<int>& widths) {
  if (!b.as_table()) return b.num_agents * static_cast<double>(forward_flop(widths));
  const std::vector<int> rest(widths.begin() + 1, widths.end());
  return table_flop(b, rest.front()).forward + b.num_agents * static_cast<double>(forward_flop(rest));
}
double backward_work(const PolicyBuffers& b, const std::vector<int>& widths) {
  if (!b.as_table()) return b.num_agents * static_cast<double>(backward_flop(widths));
  const std::vector<int> rest(widths.begin() + 1, widths.end());
  return table_flop(b, rest.front()).backward + 2.0 * b.num_agents * static_cast<double>(forward_flop(rest));
}

// Written by the rollout and read by the update.
double activation_bytes(const PolicyBuffers& buffers, const PolicySettings& settings) {
  if (!settings.reuse_activations) return 0.0;
  double floats = 0.0;
  for (const auto& net : networks(buffers, settings.model))
    floats += std::accumulate(net.begin() + 1, net.end(), 0.0);
  return 4.0 * buffers.num_agents * floats;
}

}  // namespace

std::int64_t forward_flop(const std::vector<int>& widths) {
  std::int64_t flop = 0;
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) flop += 2 * std::int64_t{widths[l]} * widths[l + 1];
  return flop;
}

std::int64_t backward_flop(const std::vector<int>& widths) {
  const std::int64_t of_first_input = 2 * std::int64_t{widths[0]} * widths[1];
  return 2 * forward_flop(widths) - of_first_input;
}

Work environment_work(const Trajectory& trajectory) {
  Work work{.bytes = flag_bytes(trajectory)};
  for (const PolicyBuffers& b : trajectory.policies())
    work.bytes += row_bytes({b.action, b.action_mask, b.active, b.reward, b.agent_terminated});
  for (const PolicyBuffers& b : trajectory.policies()) {
    work.bytes += row_bytes(b.observation);
    if (b.as_table()) break;  // there is one for all
  }
  return work;
}

Work random_play_work(const Trajectory& trajectory) {
  Work work;
  for (const PolicyBuffers& b : trajectory.policies()) work.bytes += row_bytes({b.action_mask, b.action});
  return work;
}

Work inference_work(const Trajectory& trajectory, const Config& config) {
  Work work;
  const double last = 1.0 / trajectory.steps();
  for (std::size_t p = 0; p < config.policies.size(); ++p) {
    const PolicyBuffers& b = trajectory.policies()[p];
    const auto nets = networks(b, config.policies[p].model);
    for (const auto& net : nets) work.flop += forward_work(b, net);
    work.flop += last * forward_work(b, nets.back());
    work.bytes += row_bytes({b.observation, b.action_mask, b.action, b.log_prob, b.value}) +
                  last * row_bytes({b.observation, b.value}) + activation_bytes(b, config.policies[p]);
  }
  return work;
}

Work update_work(const Trajectory& trajectory, const Config& config) {
  Work work;
  for (std::size_t p = 0; p < config.policies.size(); ++p) {
    const PolicyBuffers& b = trajectory.policies()[p];
    const PolicySettings& settings = config.policies[p];
    work.bytes += flag_bytes(trajectory) +
                  row_bytes({b.reward, b.value, b.active, b.agent_terminated, b.advantage, b.target, b.mask});
    if (!settings.to_train) continue;
    const bool ppo = settings.algorithm == kPpo;
    const double epochs = ppo ? settings.num_epochs : 1;
    const double touched = ppo && settings.num_minibatches > 1 ? 3.0 : 1.0;  // gathering reads and writes
    work.bytes += epochs * touched *
                  row_bytes({b.observation, b.action, b.action_mask, b.log_prob, b.value, b.advantage,
                             b.target, b.mask});
    work.bytes += activation_bytes(b, settings);
    for (const auto& net : networks(b, settings.model)) {
      const double forward = settings.reuse_activations ? 0.0 : forward_work(b, net);
      work.flop += epochs * (forward + backward_work(b, net));
    }
  }
  return work;
}

}  // namespace wd::bench
