// actor_critic.h: what DDPG, TD3 and SAC share. The replicas act by the actor, with its exploration; what
// they play goes to a replay memory. Every update draws a batch of it and
//   1. moves the critics towards the targets r + ... + gamma^n V'(s'), where the algorithm computes V' from
//      target critics, which follow the critics (wd/kernels/critics.h);
//   2. every policy_delay-th time, moves the actor towards actions that the critics value more, and then the
//      targets towards the networks.
// Both are steps of the update, so that the sums over ranks of one policy are in transit while another
// computes.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wd/kernels/actor.h"
#include "wd/kernels/critics.h"
#include "wd/policy_pass.h"
#include "wd/replay_algorithm.h"

namespace wd {

// The model that ReplayAlgorithm moves is that of the critics; the actor is that of the policy.
class ActorCritic : public ReplayAlgorithm {
 public:
  void begin_update(const TrainingClock& clock) override;
  void begin_step(const TrainingClock& clock, const std::function<bool()>& should_stop) override;
  bool end_step() override;
  void check() const override;
  std::vector<NamedTensor> state() const override;
  void state_changed() override;
  void weights_changed() override { follow(1.0f); }
  std::vector<std::pair<std::string, double>> metrics() const override;
  std::string warning() const override { return warning_of(0.0); }
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
    int targets = 0;                    // numbers of a target, J; 0: as many as a critic has quantiles
    bool one_critic = false;            // actor_pass() runs the first critic alone
  };
  // `deviation`, `damping`: ExplorationNumbers of actors of points.
  ActorCritic(const AlgorithmContext& context, const ActorCriticSettings& settings, const Needs& needs,
              const Schedule& deviation = 0.0, const Schedule& damping = 0.0);

  // Writes the critics' targets of rows [begin, end) to lane.rows("target"), [rows, J].
  virtual void targets(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const = 0;
  // Computes the targets, and adds the gradient of the critics' loss; writes its sums, those by TdSum of one
  // critic after another.
  virtual void critic_pass(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const;
  // Adds the gradient of the actor's loss, and writes its sums by ActorSum.
  virtual void actor_pass(Lane& lane, const ReplayBatch& batch, std::int64_t begin,
                          std::int64_t end) const = 0;
  // Other parameters that learn with the actor, from these sums; and other targets.
  virtual void begin_actor_step(const at::Tensor&, std::optional<bool>) {}
  virtual bool end_actor_step() { return true; }
  virtual void follow(float tau) { target_critics_.follow(*policy_.critics(), tau); }

  // ReplayAlgorithm's, of the critics.
  std::string warning_of(double paid) const;
  // Of the actor's actions in the last update.
  double mean_entropy() const;
  std::vector<double> sums_of_actor() const { return actor_.sums(); }  // of the last update, by ActorSum

  // The weight of conservative Q-learning's penalty in the critics' loss.
  virtual float conservative() const { return 0.0f; }

  // --- pieces of passes ---
  bool is_continuous() const { return policy_.action_layout().components > 0; }
  // The input of critics: what they read in rows [begin, end), or in their next_input(), and these actions,
  // [rows, components]. With a state, that is of all critics, [critics, ...].
  NetworkInput critics_input(const ReplayBatch& batch, const at::Tensor& action, std::int64_t begin,
                             std::int64_t end, bool next = false) const;
  // Runs critics, or the first `count` of them, on these rows.
  CriticsOutput criticize(const Model& critics, const Lane& lane, const NetworkInput& input,
                          int count = kMaxCritics) const;
  // What target critics say of the next states of these rows, and of these actions in next_input().
  CriticsOutput criticize_next(const ReplayBatch& batch, const Lane& lane, const at::Tensor& action,
                               std::int64_t begin, std::int64_t end) const;
  // Goes back through the first `count` critics from lane.rows("value_grad"), and adds to their gradients in
  // this lane if they learn there. by_action: writes the gradients of the action to lane.rows("action_grad").
  void go_back(Lane& lane, const NetworkInput& input, std::int64_t n, int count, bool by_action) const;
  // Where the actor's random numbers come from, in rows of next_input() for targets, and else of batch.now.
  enum Purpose { kForTargets, kForActor, kForPenalty };
  ActorDraw draw(int purpose, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const;
  // The arguments of kernels for the actor's output in these rows: the action is written to `action`.
  ActorActionsArgs actions_of(const at::Tensor& output, const ActorDraw& draw,
                              const at::Tensor& action) const;
  // Of continuous actions: writes the targets for what this actor does in the next state, with the noise of
  // wd/kernels/actor.h, and with the entropy that alpha [1] weighs; null: without.
  void targets_of(const Network& actor, Lane& lane, const ReplayBatch& batch, std::int64_t begin,
                  std::int64_t end, const Noise& noise, const float* alpha) const;
  // Of continuous actions: adds the gradient of a loss through the actor's action in every row. `loss`
  // computes it from what the first `count` critics say of that action, or all of them.
  using ActorLoss = std::function<void(Queue queue, const ActorLossArgs& args)>;
  void learn_from_critics(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end,
                          int count, const float* alpha, const ActorLoss& loss = actor_loss) const;

  // The mean over rows of the last batch of the greatest less the least value that a critic gives to what was
  // played; NaN of one critic. Synchronizes on CUDA. All ranks.
  double critics_gap() const;

  const ActorCriticSettings& settings_;
  Model target_critics_;

 private:
  // By the first update of the iteration, modulo policy_delay: so an actor that moves every second time does
  // so however few updates an iteration has.
  int variant(std::int64_t iteration) const final {
    return static_cast<int>(iteration * updates_ % settings_.policy_delay);
  }
  bool moves_actor() const { return (update_ + current_variant() + 1) % settings_.policy_delay == 0; }
  at::Tensor accumulate(const ReplayBatch& batch, const std::function<bool()>& should_stop) final;
  at::Tensor played_values(const Batch& batch, std::int64_t rows) const final;
  double dormant_share_of_critics() const;
  void burn_in_critics(const ReplayBatch& batch);
  void penalize(const ReplayBatch& batch, std::int64_t begin, float scale, bool adds,
                const at::Tensor& grad) const;
  void push_down(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const;

  Learned actor_;
  Lanes critic_lanes_, actor_lanes_, critic_burn_in_lanes_;
  // With a state: of each critic where the learned part of a window begins, and 0, [critics + 1, windows * A,
  // size]. Nobody stores their states, so they begin a window with 0.
  at::Tensor critic_states_;
  Coefficients rate_;
  ActionLayout critic_layout_;  // of choices; of a continuous action one choice, whose value is that of it
  at::Tensor no_choice_;        // [rows of a batch] int32 zeros: that choice
  const int num_targets_;       // J
  bool on_actor_ = false;       // whether the step is the actor's
};

}  // namespace wd
