// episode_log.cpp: finished episodes, in the order of steps and then replicas.
#include "src/trainer/episode_log.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/episodes.h"
#include "src/device.h"
#include "src/trainer/named.h"
#include "wd/error.h"

namespace wd {

namespace {

double mean(const auto& values) {
  if (values.empty()) return std::nan("");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

EpisodeLog::EpisodeLog(const Trajectory& trajectory, Device device)
    : trajectory_(trajectory), device_(device) {
  const std::int64_t T = trajectory.steps(), E = trajectory.num_envs();
  if (trajectory.statistics().defined())
    statistics_.resize(static_cast<std::size_t>(trajectory.statistics().size(2)));
  for (const PolicyBuffers& buffers : trajectory.policies()) {
    const auto floats = buffers.reward.options();
    policies_.push_back({at::zeros({E}, floats),
                         at::zeros({E}, floats.dtype(at::kInt)),
                         at::zeros({T, E}, floats),
                         at::zeros({T, E}, floats.dtype(at::kInt)),
                         {},
                         {},
                         {}});
  }
}

// Lengths are those of any policy: where an episode ended they are not 0.
void EpisodeLog::update_statistics(const at::Tensor& lengths) {
  if (!trajectory_.statistics().defined()) return;
  const at::Tensor values = trajectory_.statistics().cpu();
  const std::size_t K = statistics_.size();
  const std::int32_t* const ended = lengths.const_data_ptr<std::int32_t>();
  const float* const value = values.const_data_ptr<float>();
  for (std::size_t i = 0; i < static_cast<std::size_t>(lengths.numel()); ++i) {
    if (ended[i] == 0) continue;
    for (std::size_t k = 0; k < K; ++k) statistics_[k].push_back(value[i * K + k]);
  }
}

void EpisodeLog::update() {
  for (std::size_t p = 0; p < policies_.size(); ++p) {
    PolicyLog& log = policies_[p];
    const PolicyBuffers& buffers = trajectory_.policies()[p];
    EpisodesArgs args;
    args.steps = trajectory_.steps();
    args.num_envs = trajectory_.num_envs();
    args.num_agents = buffers.num_agents;
    args.reward = buffers.reward.const_data_ptr<float>();
    args.terminated = trajectory_.terminated().const_data_ptr<std::uint8_t>();
    args.truncated = trajectory_.truncated().const_data_ptr<std::uint8_t>();
    args.reset_step = trajectory_.reset_step().const_data_ptr<std::uint8_t>();
    args.running_return = log.running_return.mutable_data_ptr<float>();
    args.running_length = log.running_length.mutable_data_ptr<std::int32_t>();
    args.finished_return = log.finished_return.mutable_data_ptr<float>();
    args.finished_length = log.finished_length.mutable_data_ptr<std::int32_t>();
    episodes(current_queue(device_), args);
    const at::Tensor returns = log.finished_return.cpu(), lengths = log.finished_length.cpu();
    if (p == 0) update_statistics(lengths);
    const float* const finished_return = returns.const_data_ptr<float>();
    const std::int32_t* const finished_length = lengths.const_data_ptr<std::int32_t>();
    for (std::int64_t i = 0; i < lengths.numel(); ++i) {
      if (finished_length[i] == 0) continue;
      log.returns.push_back(finished_return[i]);
      log.lengths.push_back(finished_length[i]);
      log.recent.push_back(finished_return[i]);
      if (log.recent.size() > kWindow) log.recent.pop_front();
    }
  }
}

EpisodeLog::Interval EpisodeLog::take_interval(std::size_t policy) {
  PolicyLog& log = policies_[policy];
  Interval interval;
  interval.episodes = static_cast<std::int64_t>(log.returns.size());
  interval.mean_return = mean(log.returns);
  interval.max_return =
      log.returns.empty() ? std::nan("") : *std::max_element(log.returns.begin(), log.returns.end());
  interval.mean_length = mean(log.lengths);
  log.returns.clear();
  log.lengths.clear();
  return interval;
}

std::vector<double> EpisodeLog::take_statistics() {
  std::vector<double> means;
  for (std::vector<double>& values : statistics_) {
    means.push_back(mean(values));
    values.clear();
  }
  return means;
}

std::vector<NamedTensor> EpisodeLog::state() const {
  std::vector<NamedTensor> state;
  const auto list = [&](const std::string& name, const auto& values) {
    at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kDouble);
    std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<double>());
    state.push_back({name, tensor});
  };
  for (std::size_t p = 0; p < policies_.size(); ++p) {
    const PolicyLog& log = policies_[p];
    const std::string prefix = trajectory_.policies()[p].name + "/";
    state.push_back({prefix + "running_return", log.running_return});
    state.push_back({prefix + "running_length", log.running_length});
    list(prefix + "recent", log.recent);
    list(prefix + "returns", log.returns);
    list(prefix + "lengths", log.lengths);
  }
  for (std::size_t k = 0; k < statistics_.size(); ++k) list(concat("statistics/", k), statistics_[k]);
  return state;
}

void EpisodeLog::restore(const std::vector<NamedTensor>& state) {
  const auto list = [&](const std::string& name, auto& values) {
    const at::Tensor& tensor = find_tensor(state, name);
    WD_CHECK(tensor.scalar_type() == at::kDouble && tensor.dim() == 1, "the checkpoint's tensor '", name,
             "' is no list of doubles");
    values.assign(tensor.const_data_ptr<double>(), tensor.const_data_ptr<double>() + tensor.numel());
  };
  for (std::size_t p = 0; p < policies_.size(); ++p) {
    PolicyLog& log = policies_[p];
    const std::string prefix = trajectory_.policies()[p].name + "/";
    restore_tensor(state, prefix + "running_return", log.running_return);
    restore_tensor(state, prefix + "running_length", log.running_length);
    list(prefix + "recent", log.recent);
    list(prefix + "returns", log.returns);
    list(prefix + "lengths", log.lengths);
  }
  for (std::size_t k = 0; k < statistics_.size(); ++k) list(concat("statistics/", k), statistics_[k]);
}

double EpisodeLog::recent_mean(std::size_t policy) const { return mean(policies_[policy].recent); }

}  // namespace wd
