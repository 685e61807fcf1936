// ddpg.cpp: deep deterministic policy gradient (Lillicrap et al. 2016, arXiv 1509.02971). The actor computes
// an action mu(s) = tanh(...), in half-widths of its bounds, and explores with noise. The critic learns
//   y = r_t + ... + gamma^{n-1} r_{t+n-1} + gamma^n Q'(s_{t+n}, mu'(s_{t+n})),
// where Q' and mu' are targets that follow critic and actor, and the actor learns to maximize Q(s, mu(s)).
// Differences from the paper: replicas play together, n steps, no weight decay, and independent noise unless
// noise_damping makes it an Ornstein-Uhlenbeck process; the value of a truncated episode's last state counts.
#include "src/algorithm/ddpg.h"

#include "src/base/join.h"

namespace wd {

Ddpg::Ddpg(const AlgorithmContext& context, const DdpgSettings& settings, const Noise& smoothing)
    : Ddpg(context, settings, smoothing, std::make_unique<Model>(context.policy().model().like())) {}

Ddpg::Ddpg(const AlgorithmContext& context, const DdpgSettings& settings, const Noise& smoothing,
           std::unique_ptr<Model> target_actor)
    : ActorCritic(context, settings,
                  {.for_targets = {{target_actor.get(), ModelUse::kForward}},
                   .rows = {{"action", context.policy().action_layout().components}},
                   .one_critic = true},
                  settings.noise, settings.noise_damping),
      target_actor_(std::move(target_actor)),
      smoothing_(smoothing) {}

void Ddpg::targets(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const {
  targets_of(target_actor_->network(0), lane, batch, begin, end, smoothing_, nullptr);
}

void Ddpg::actor_pass(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const {
  learn_from_critics(lane, batch, begin, end, 1, nullptr);
}

void Ddpg::follow(float tau) {
  ActorCritic::follow(tau);
  target_actor_->follow(policy_.model(), tau);
}

std::vector<NamedTensor> Ddpg::state() const {
  return joined(ActorCritic::state(), {{"target_actor", target_actor_->parameters()}});
}

void Ddpg::state_changed() {
  ActorCritic::state_changed();
  target_actor_->refresh_shadow();
}

void DdpgSettings::describe(Fields& field) {
  ActorCriticSettings::describe(field);
  field("noise", noise, {0, 10},
        "deviation of the noise that is added to an action in every step, in half-widths of its bounds");
  field("noise_damping", noise_damping, above(0, 1),
        "share of the noise that is lost from step to step; 1: steps have independent noise; below it, noise "
        "adds up (an Ornstein-Uhlenbeck process) from 0 at an episode's start, to a deviation of "
        "noise / sqrt(noise_damping (2 - noise_damping))");
}

AlgorithmTraits DdpgSettings::traits() const {
  AlgorithmTraits traits = OffPolicySettings::traits();
  traits.windows = true;
  traits.output = PolicyOutput::kPoint;
  traits.critics = 1;
  traits.carries_noise = noise_damping < 1.0;
  return traits;
}

std::unique_ptr<Algorithm> DdpgSettings::make(const AlgorithmContext& context) const {
  return std::make_unique<Ddpg>(context, *this, Ddpg::Noise{});
}

WD_REGISTER_ALGORITHM(DdpgSettings);

}  // namespace wd
