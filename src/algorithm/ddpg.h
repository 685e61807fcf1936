// ddpg.h: DDPG, of which TD3 is a variant.
#pragma once

#include "wd/actor_critic.h"

namespace wd {

class Ddpg final : public ActorCritic {
 public:
  using ActorCritic::Noise;
  // `smoothing`: noise of the actions that targets are computed for; DDPG has none.
  Ddpg(const AlgorithmContext& context, const DdpgSettings& settings, const Noise& smoothing);

  std::vector<NamedTensor> state() const override;
  void state_changed() override;

 protected:
  void targets(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const override;
  void actor_pass(Lane& lane, const ReplayBatch& batch, std::int64_t begin, std::int64_t end) const override;
  void follow(float tau) override;

 private:
  Ddpg(const AlgorithmContext& context, const DdpgSettings& settings, const Noise& smoothing,
       std::unique_ptr<Model> target_actor);

  std::unique_ptr<Model> target_actor_;
  Noise smoothing_;
};

}  // namespace wd
