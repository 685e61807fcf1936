// actor_critic.h: what DDPG, TD3 and SAC share. The replicas act by the actor, with its exploration; what
// they play goes to a replay memory. Every update draws a batch of it and
//   1. moves the critics towards the targets r + ... + gamma^n V'(s'), where the algorithm computes V' from
//      target critics, which follow the critics (kernels/critics.h);
//   2. every policy_delay-th time, moves the actor towards actions that the critics value more, and then the
//      targets towards the networks.
// Both are steps of the update, so that the sums over ranks of one policy are in transit while another
// computes.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/actor.h"
#include "kernels/critics.h"
#include "wd/algorithms.h"
#include "wd/coefficients.h"
#include "wd/learned.h"
#include "wd/policy_pass.h"
#include "wd/replay.h"
#include "wd/rollout_algorithm.h"

namespace wd {

class ActorCritic : public Algorithm {
 public:
  int stage(std::int64_t iteration) const override;
  void enter(int stage) override { stage_ = stage; }
  bool can_be_undone() const override { return false; }  // the ring is not copied before an iteration
  bool wants_values() const override { return false; }
  void begin_rollout(const TrainingClock& clock) override { exploration_.update(clock); }
  const float* exploration() const override { return exploration_.rounded().const_data_ptr<float>(); }
  void begin_prepare() override {}
  void begin_update(const TrainingClock& clock) override;
  bool is_done() const override { return update_ == updates(); }
  void begin_step(const TrainingClock& clock, const std::function<bool()>& should_stop) override;
  bool end_step() override;
  void set_skip_flag(const std::int64_t* failed) override { failed_ = failed; }
  void check() const override;
  std::vector<NamedTensor> state() const override;
  void state_changed() override;
  void weights_changed() override { follow(1.0f); }
  std::vector<NamedTensor> memory(std::int64_t iteration) const override { return replay_.memory(iteration); }
  std::string memory_fault(std::int64_t iteration) const override { return replay_.memory_fault(iteration); }
  void memory_changed() override { replay_.memory_changed(); }
  void forget(std::int64_t iteration) override { replay_.forget(iteration); }
  std::vector<std::pair<std::string, double>> metrics() const override;
  void poison_next(const std::string& tensor) override;

 protected:
  // Of the actions that targets are computed for.
  struct Noise {
    double deviation = 0.0, clip = 0.0;
  };
  // Memory of lanes, besides that of all algorithms.
  struct Needs {
    std::vector<ModelUse> for_targets;  // models that targets() runs, besides the target critics
    std::vector<RowMemory> rows;        // of both passes
  };
  // `exploration`: schedules of what the policy's distribution explores with, besides the probability of a
  // uniform draw.
  ActorCritic(const AlgorithmContext& context, const ActorCriticSettings& settings, const Needs& needs,
              const std::vector<Schedule>& exploration);

  // Writes the critics' targets of rows [begin, end) to lane.rows("target"), [rows, K].
  virtual void targets(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const = 0;
  // Adds the gradient of the actor's loss, and writes its sums by ActorSum.
  virtual void actor_pass(Lane& lane, const ReplayBatch& batch, std::int64_t begin,
                          std::int64_t end) const = 0;
  // Other parameters that learn with the actor, from these sums; and other targets.
  virtual void begin_actor_step(const at::Tensor&, std::optional<bool>) {}
  virtual bool end_actor_step() { return true; }
  virtual void follow(float tau) { target_critics_.follow(*policy_.critics(), tau); }

  // Of the actor's actions in the last update.
  double mean_entropy() const;
  std::vector<double> sums_of_actor() const { return actor_.sums(); }  // of the last update, by ActorSum

  // The weight of conservative Q-learning's penalty in the critics' loss.
  virtual float conservative() const { return 0.0f; }

  // --- pieces of passes ---
  bool is_continuous() const { return policy_.action_layout().components > 0; }
  // The input of critics: the observations of `rows`, and these actions, [rows, components].
  NetworkInput with_action(const Batch& rows, const at::Tensor& action, std::int64_t begin,
                           std::int64_t end) const;
  // Runs critics, or the first `count` of them, on these rows.
  CriticsOutput criticize(const Model& critics, const Lane& lane, const NetworkInput& input,
                          int count = kMaxCritics) const;
  // Where the actor's random numbers come from: `purpose` 0 is for targets, 1 for its own loss, 2 for the
  // penalty.
  ActorDraw draw(int purpose, std::int64_t begin) const;
  // Of continuous actions: writes the targets for what this actor does in the next state, with the noise of
  // kernels/actor.h, and with the entropy that alpha [1] weighs; null: without.
  void targets_of(const Network& actor, Lane& lane, const ReplayBatch& batch, std::int64_t begin,
                  std::int64_t end, const Noise& noise, const float* alpha) const;
  // Of continuous actions: the actor's action in every row, what the critics say (`lowest`: the lowest of
  // them, otherwise the first), and the gradient of the loss through the action.
  void learn_from_critics(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end,
                          bool lowest, const float* alpha) const;

  const ActorCriticSettings& settings_;
  Policy& policy_;
  Device device_;
  Model target_critics_;
  ProcessGroup group_;
  const std::int64_t* failed_ = nullptr;  // in device memory: not 0 if nothing may be learned; may be null

 private:
  enum Coefficient { kLr, kCriticLr, kMaxGradNorm, kImportance };
  static constexpr int kFill = 0;  // the stage of an iteration that only plays

  std::int64_t updates() const { return stage_ == kFill ? 0 : updates_; }
  bool moves_actor() const { return (update_ + stage_) % settings_.policy_delay == 0; }
  // The arguments of kernels for the actor's output in these rows: the action is written to `action`.
  ActorActionsArgs actions_of(const at::Tensor& output, const ActorDraw& draw,
                              const at::Tensor& action) const;
  void penalize(const ReplayBatch& batch, std::int64_t begin, float scale, bool adds,
                const at::Tensor& grad) const;
  void push_down(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const;
  void critic_pass(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const;

  const bool to_train_;
  const std::uint64_t seed_;
  const int index_;
  Learned actor_, critics_;
  Replay replay_;
  Lanes critic_lanes_, actor_lanes_;
  Coefficients coefficients_, exploration_;
  ActionLayout critic_layout_;  // of choices; of a continuous action one choice, whose value is that of it
  at::Tensor no_choice_;        // [rows of a batch] int32 zeros: that choice
  at::Tensor error_;            // [rows of a batch] float32: for priorities
  const std::int64_t updates_;  // of an iteration that learns
  int stage_ = kFill;
  std::int64_t update_ = 0;  // of this iteration, begun or about to begin
  bool on_actor_ = false;    // whether the step is the actor's
  const ReplayBatch* batch_ = nullptr;
  const TrainingTime* time_ = nullptr;
};

}  // namespace wd
