// ddpg.h: DDPG, of which TD3 is a variant.
#pragma once

#include "src/algorithm/actor_critic.h"

namespace wd {

class Ddpg final : public ActorCritic {
 public:
  // The noise of the target's actions (kernels/actor.h); DDPG has none.
  struct Smoothing {
    double noise = 0.0, clip = 0.0;
  };
  Ddpg(const AlgorithmContext& context, const DdpgSettings& settings, const Smoothing& smoothing);

  std::vector<NamedTensor> state() const override;
  void state_changed() override;

 protected:
  void targets(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const override;
  void actor_pass(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const override;
  void follow(float tau) override;

 private:
  Ddpg(const AlgorithmContext& context, const DdpgSettings& settings, const Smoothing& smoothing,
       std::unique_ptr<Model> target_actor);

  std::unique_ptr<Model> target_actor_;
  Smoothing smoothing_;
};

}  // namespace wd
