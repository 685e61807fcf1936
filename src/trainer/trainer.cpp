// trainer.cpp: one iteration: T steps of all replicas, then the update of every policy from the same memory.
#include "wd/trainer.h"

#include <ATen/ATen.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "kernels/reduce.h"
#include "src/algorithm/guard.h"
#include "src/device.h"
#include "src/trainer/action_spread.h"
#include "src/trainer/episode_log.h"
#include "src/trainer/named.h"
#include "src/trainer/timeline.h"
#include "wd/algorithm.h"
#include "wd/error.h"
#include "wd/weights.h"

namespace wd {

namespace {

using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw UsageError("env.starts = " + path + ": cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> policy_names(const Config& config) {
  std::vector<std::string> names;
  for (const PolicySettings& policy : config.policies) names.push_back(policy.name);
  return names;
}

}  // namespace

ReplicasOptions replicas_options(const Config& config, Device device) {
  ReplicasOptions options;
  options.num_envs = static_cast<int>(config.trainer.num_envs);
  options.seed = static_cast<std::uint64_t>(config.trainer.seed);
  options.reset = static_cast<ResetMode>(config.env.reset);
  options.pool_size = static_cast<std::uint32_t>(config.env.reset_pool_size);
  if (options.reset == ResetMode::kGiven) options.starts = read_text(config.env.starts);
  options.device = device;
  return options;
}

// Copies of tensors, to be put back: allocated once.
class Backup {
 public:
  void keep(const std::vector<at::Tensor>& tensors) {
    if (copies_.empty())
      for (const at::Tensor& tensor : tensors) copies_.push_back(at::empty_like(tensor));
    for (std::size_t k = 0; k < tensors.size(); ++k) copies_[k].copy_(tensors[k]);
  }
  void put_back(const std::vector<at::Tensor>& tensors) const {
    for (std::size_t k = 0; k < tensors.size(); ++k) tensors[k].copy_(copies_[k]);
  }

 private:
  std::vector<at::Tensor> copies_;
};

struct Trainer::Impl {
  const Config config;
  Device device;
  Replicas replicas;
  Trajectory trajectory;
  std::vector<Policy> policies;
  std::vector<Learner> learners;
  EpisodeLog episodes;
  Guard guard;
  Timeline timeline;
  StepCounts counts;
  StepCounts counts_at_metrics;
  Clock::time_point start = Clock::now(), metrics_taken = start;
  bool started = false;
  Backup backup;  // of what an iteration changes before it counts

  Impl(const Config& c, const EnvironmentRow& row, const Environment& environment, Device d)
      : config(c),
        device(d),
        replicas(row, environment, replicas_options(c, d)),
        trajectory(replicas.spec(), policy_names(c), c.policy_of_role,
                   static_cast<int>(c.trainer.rollout_steps()), static_cast<int>(c.trainer.num_envs), d),
        episodes(trajectory, d),
        guard(trajectory, d),
        timeline(d) {
    policies.reserve(c.policies.size());
    for (std::size_t p = 0; p < c.policies.size(); ++p) {
      const int index = static_cast<int>(p);
      const auto seed = static_cast<std::uint64_t>(c.trainer.seed);
      policies.emplace_back(trajectory.policies()[p], c.policies[p].model, index, seed, c.trainer.chunk_rows,
                            d);
      if (!c.policies[p].model.model_ckpt_filepath.empty())
        load_weights(policies[p], c.policies[p].model.model_ckpt_filepath);
      learners.emplace_back(policies[p], trajectory, index, c.policies[p], seed);
    }
  }

  void poison(const std::string& tensor);
  std::vector<at::Tensor> changing() const;
  std::map<std::string, std::vector<NamedTensor>> files() const;
  bool rollout(const std::function<bool()>& give_up);
  bool update(const std::function<bool()>& give_up, const std::string& poisoned);
  void add_policy_metrics(MetricsRow& row, std::size_t p);
  double reward_mean(const PolicyBuffers& buffers) const;
};

// For tests: NaN where it hurts.
void Trainer::Impl::poison(const std::string& tensor) {
  const double nan = std::nan("");
  PolicyBuffers& buffers = trajectory.policies()[0];
  if (tensor == "observation") buffers.observation[0][0][0][0].fill_(nan);
  if (tensor == "reward") buffers.reward[0][0][0].fill_(nan);
  if (tensor == "weight") policies[0].parameters()[0].fill_(nan);
  learners[0].poison_next(tensor);
}

// What an iteration changes as it goes: replicas, parameters, moments.
std::vector<at::Tensor> Trainer::Impl::changing() const {
  std::vector<at::Tensor> tensors = {replicas.blocks()};
  for (const Policy& policy : policies) tensors.push_back(policy.parameters());
  for (const Learner& learner : learners)
    for (const NamedTensor& named : learner.optimizer()) tensors.push_back(named.tensor);
  return tensors;
}

// All that is saved, by file: the tensors themselves.
std::map<std::string, std::vector<NamedTensor>> Trainer::Impl::files() const {
  std::map<std::string, std::vector<NamedTensor>> files;
  for (std::size_t p = 0; p < policies.size(); ++p) {
    files["weights/" + policies[p].name()] = policies[p].named_parameters();
    files["optimizer/" + policies[p].name()] = learners[p].optimizer();
  }
  std::vector<NamedTensor>& replica_file = files["replicas"];
  replica_file.push_back({"blocks", replicas.blocks()});
  for (const auto& [name, row] : trajectory.last_rows()) replica_file.push_back({name, row});
  files["episodes"] = episodes.state();
  return files;
}

bool Trainer::Impl::rollout(const std::function<bool()>& give_up) {
  timeline.mark(Phase::kOther);
  if (started) {
    trajectory.carry_over();
  } else {
    replicas.step(trajectory.first_rows());
    started = true;
  }
  const int steps = trajectory.steps();
  Policy::ActOptions act;
  act.seed = static_cast<std::uint64_t>(config.trainer.seed);
  for (int t = 0; t < steps; ++t) {
    if (give_up && give_up()) return false;
    act.step = static_cast<std::uint64_t>(counts.iteration) * static_cast<std::uint64_t>(steps) +
               static_cast<std::uint64_t>(t);
    for (std::size_t p = 0; p < policies.size(); ++p) policies[p].act(trajectory.policies()[p], t, act);
    timeline.mark(Phase::kInference);
    replicas.step(trajectory.rows(t));
    timeline.mark(Phase::kEnvironment);
  }
  for (std::size_t p = 0; p < policies.size(); ++p) policies[p].evaluate(trajectory.policies()[p], steps);
  timeline.mark(Phase::kInference);
  return true;
}

bool Trainer::Impl::update(const std::function<bool()>& give_up, const std::string& poisoned) {
  if (!poisoned.empty()) poison(poisoned);
  guard.check_rollout(policies);
  const UpdateTime time{counts.iteration, counts.env_steps};
  bool complete = true;
  for (Learner& learner : learners) {
    learner.prepare();
    complete = complete && learner.update(time, give_up);
  }
  for (const Policy& policy : policies) guard.check_weights(policy);
  timeline.mark(Phase::kUpdate);
  return complete;
}

Trainer::Trainer(const Config& config, const EnvironmentRow& row, const Environment& environment,
                 Device device)
    : impl_(std::make_unique<Impl>(config, row, environment, device)) {}
Trainer::~Trainer() = default;

bool Trainer::iterate(const std::function<bool()>& give_up, const std::string& poison) {
  Impl& self = *impl_;
  const bool was_started = self.started;
  if (give_up) self.backup.keep(self.changing());
  if (!self.rollout(give_up) || !self.update(give_up, poison)) {
    self.backup.put_back(self.changing());
    self.trajectory.carry_back();
    self.started = was_started;
    return false;
  }
  self.episodes.update();
  ++self.counts.iteration;
  self.counts.env_steps += self.config.trainer.rollout_steps() * self.config.trainer.num_envs;
  self.counts.agent_steps = self.counts.env_steps * self.replicas.spec().num_agents();
  self.timeline.mark(Phase::kOther);
  return true;
}

void Trainer::rollout() { impl_->rollout({}); }

Snapshot Trainer::snapshot() const {
  Snapshot snapshot{impl_->counts, wall_s(), impl_->files()};
  for (auto& [name, tensors] : snapshot.files) tensors = host_copies(tensors);
  return snapshot;
}

void Trainer::restore(const Snapshot& snapshot) {
  Impl& self = *impl_;
  for (const auto& [file, tensors] : self.files()) {
    const auto saved = snapshot.files.find(file);
    WD_CHECK(saved != snapshot.files.end(), "the checkpoint has no file ", file, ".safetensors");
    if (file == "episodes") {
      self.episodes.restore(saved->second);
    } else {
      for (const NamedTensor& named : tensors) restore_tensor(saved->second, named.name, named.tensor);
    }
  }
  self.counts = self.counts_at_metrics = snapshot.counts;
  self.started = snapshot.counts.iteration > 0;
  self.metrics_taken = Clock::now();
  self.start = self.metrics_taken - std::chrono::duration_cast<Clock::duration>(Seconds(snapshot.wall_s));
}

double Trainer::wall_s() const { return Seconds(Clock::now() - impl_->start).count(); }
const StepCounts& Trainer::counts() const { return impl_->counts; }
Trajectory& Trainer::trajectory() { return impl_->trajectory; }
Replicas& Trainer::replicas() { return impl_->replicas; }
std::vector<Policy>& Trainer::policies() { return impl_->policies; }
double Trainer::mean_return(std::size_t policy) const { return impl_->episodes.recent_mean(policy); }

bool Trainer::return_reached() const {
  const auto& wanted = impl_->config.trainer.stop_return;
  return wanted && impl_->episodes.recent_count() == EpisodeLog::kWindow &&
         impl_->episodes.recent_mean(0) >= *wanted;
}

// Mean reward of the rollout's transitions, in a fixed order.
double Trainer::Impl::reward_mean(const PolicyBuffers& buffers) const {
  const auto doubles = buffers.reward.options().dtype(at::kDouble);
  at::Tensor partial = at::empty({3 * num_chunks(buffers.reward.numel())}, doubles),
             moments = at::empty({3}, doubles);
  masked_moments(current_queue(device), buffers.reward.const_data_ptr<float>(),
                 buffers.mask.const_data_ptr<std::uint8_t>(), buffers.reward.numel(),
                 partial.mutable_data_ptr<double>(), moments.mutable_data_ptr<double>());
  return (moments[1] / moments[0].clamp_min(1.0)).item<double>();
}

void Trainer::Impl::add_policy_metrics(MetricsRow& row, std::size_t p) {
  const PolicyBuffers& buffers = trajectory.policies()[p];
  const std::string prefix = buffers.name + "/";
  const EpisodeLog::Interval ended = episodes.take_interval(p);
  if (p == 0) row.add("episodes", static_cast<double>(ended.episodes));
  row.add(prefix + "mean_return", ended.mean_return);
  row.add(prefix + "max_return", ended.max_return);
  row.add(prefix + "episode_length", ended.mean_length);
  row.add(prefix + "reward_mean", reward_mean(buffers));
  row.add(prefix + "reward_min", buffers.reward.min().item<double>());
  row.add(prefix + "reward_max", buffers.reward.max().item<double>());
  for (const auto& [name, value] : learners[p].metrics()) row.add(prefix + name, value);
  const ActionSpread spread = action_spread(buffers);
  for (std::size_t axis = 0; axis < ActionSpread::kNames.size(); ++axis) {
    for (std::size_t k = 0; k < spread.by_axis[axis].size(); ++k)
      row.add(concat(prefix, ActionSpread::kNames[axis], '/', buffers.action_space.name(k)),
              spread.by_axis[axis][k]);
  }
}

MetricsRow Trainer::take_metrics() {
  Impl& self = *impl_;
  MetricsRow row(self.counts);
  for (std::size_t p = 0; p < self.policies.size(); ++p) self.add_policy_metrics(row, p);
  const std::vector<double> statistics = self.episodes.take_statistics();
  for (std::size_t k = 0; k < statistics.size(); ++k)
    row.add(concat(kEnvironmentGroup, '/', self.replicas.spec().statistics[k].field), statistics[k]);
  self.timeline.mark(Phase::kOther);
  const auto seconds = self.timeline.totals();
  const Clock::time_point now = Clock::now();
  const double interval = Seconds(now - self.metrics_taken).count();
  const auto steps = static_cast<double>(self.counts.env_steps - self.counts_at_metrics.env_steps);
  row.add("time/wall_s", Seconds(now - self.start).count());
  row.add("time/env_steps_per_s", steps / interval);
  row.add("time/agent_steps_per_s", steps * self.replicas.spec().num_agents() / interval);
  row.add("time/environment_s", seconds[static_cast<std::size_t>(Phase::kEnvironment)]);
  row.add("time/inference_s", seconds[static_cast<std::size_t>(Phase::kInference)]);
  row.add("time/update_s", seconds[static_cast<std::size_t>(Phase::kUpdate)]);
  row.add("time/other_s", seconds[static_cast<std::size_t>(Phase::kOther)]);
  self.metrics_taken = now;
  self.counts_at_metrics = self.counts;
  return row;
}

}  // namespace wd
