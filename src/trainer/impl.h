// impl.h: the parts of a trainer, in the order in which data passes through them.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "src/algorithm/guard.h"
#include "src/device/graph.h"
#include "src/device/pace.h"
#include "src/recorded/recording.h"
#include "src/trainer/average.h"
#include "src/trainer/episode_log.h"
#include "src/trainer/evidence.h"
#include "src/trainer/injected_faults.h"
#include "src/trainer/played.h"
#include "src/trainer/timeline.h"
#include "wd/algorithm.h"
#include "wd/game.h"
#include "wd/trainer.h"

namespace wd {

using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;

// Copies of tensors, from which they can be restored; allocated once.
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
  ProcessGroup group;
  ReplicasOptions share;
  Game game;
  Replicas& replicas;
  Trajectory& trajectory;
  std::vector<Policy> policies;
  std::vector<PolicyPlayer*> players;                  // of the game
  std::vector<std::unique_ptr<Recording>> recordings;  // of the policies that learn, if training is offline
  std::vector<Learner> learners;
  std::vector<WeightsAverage> averages;  // of the policies
  EpisodeLog episodes;
  Guard guard;
  EvidenceKeeper evidence;
  Timeline timeline;
  TrainingClock clock;  // the counts, in device memory
  Graph rollout_graph, update_graph;
  Branches branches;  // one per policy
  Pace pace;
  StepCounts counts;
  StepCounts counts_at_metrics;
  Clock::time_point start = Clock::now(), metrics_taken = start;
  bool straggler_reported = false, dropped_reported = false, endless_reported = false;
  std::set<std::size_t> warned;  // policies whose algorithm has warned
  std::set<std::size_t> idle_reported;
  bool memory_awaited = false;  // restore() was called, and read_memory() was not yet
  std::int64_t rollouts = 0;    // rollouts that this object made
  // Iterations that this object made, by the stages of all algorithms.
  std::map<std::vector<int>, std::int64_t> made;
  PlayedWeights played;  // of all policies, if the return that they earn may end training; otherwise empty
  bool played_known = false, update_taken_back = false;
  Backup backup;                                // the tensors that an iteration changes, as before it
  at::Tensor flag = at::zeros({1}, at::kLong);  // on the host, for communication between ranks

  struct Iteration {
    std::function<bool()> should_stop = {};
    InjectedFaults faults = {};
  };

  Impl(const Config& c, const Environment& environment, Device d, ProcessGroup g);
  bool iterate(const Iteration& options);

  static ReplicasOptions share_of(const Config& config, const Environment& environment, Device device,
                                  const ProcessGroup& group);
  bool keeps_activations(std::size_t policy) const;
  bool has_room(double bytes) const;
  bool is_offline() const { return !config.trainer.offline.empty(); }
  const Recording* open_recording(std::size_t policy);
  void poison(const std::string& tensor);
  void synchronize();
  void exchange_played();
  void parameters_changed();        // call this after changes from outside an update
  std::vector<int> stages() const;  // of the iteration that comes next
  const Learner* not_undoable() const;
  std::vector<at::Tensor> weights() const;
  std::vector<at::Tensor> learned() const;
  std::vector<at::Tensor> changing() const;
  bool preempts() const { return config.trainer.straggler_preempt > 0.0 && group.size() > 1; }
  bool any(bool here) const;
  bool enough_ranks_done() const;
  std::int64_t env_steps_of_rollout() const;
  auto naming_huge_numbers(const auto& f) const;
  std::map<std::string, std::vector<NamedTensor>> files() const;
  std::map<std::string, std::vector<NamedTensor>> trained_files();
  void restore_played(const Snapshot& snapshot);
  bool replays(const Iteration& options) const;
  bool rollout(const Iteration& options);
  bool step_through(const Iteration& options, bool with_marks);
  bool update(const Iteration& options);
  bool learn(const std::function<bool()>& should_stop);
  bool update_policies(const std::function<bool()>& should_stop);
  void add_policy_metrics(MetricsRow& row, std::size_t p);
  double reward_mean(const PolicyBuffers& buffers) const;
  void report_dropped_rewards();
  void report_idle_policies();
  void report_warnings();
  void report_stragglers(double rollout_s, MetricsRow& row);
};

}  // namespace wd
