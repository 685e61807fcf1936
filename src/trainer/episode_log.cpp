// episode_log.cpp: finished episodes, in the order of steps and then replicas.
#include "src/trainer/episode_log.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/episodes.h"
#include "src/device.h"

namespace wd {

namespace {

double mean(const auto& values) {
  if (values.empty()) return std::nan("");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

EpisodeLog::EpisodeLog(const Trajectory& trajectory, Device device) : trajectory_(trajectory), device_(device) {
  const std::int64_t T = trajectory.steps(), E = trajectory.num_envs();
  for (const PolicyBuffers& buffers : trajectory.policies()) {
    const auto floats = buffers.reward.options();
    policies_.push_back({at::zeros({E}, floats), at::zeros({E}, floats.dtype(at::kInt)), at::zeros({T, E}, floats),
                         at::zeros({T, E}, floats.dtype(at::kInt)), {}, {}, {}});
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
  interval.max_return = log.returns.empty() ? std::nan("") : *std::max_element(log.returns.begin(), log.returns.end());
  interval.mean_length = mean(log.lengths);
  log.returns.clear();
  log.lengths.clear();
  return interval;
}

double EpisodeLog::recent_mean(std::size_t policy) const { return mean(policies_[policy].recent); }

}  // namespace wd
