// played.h: a copy of the weights that played the last rollout, from before its update.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "wd/config.h"

namespace wd {

// Whether the return that training itself earns may end it.
inline bool ends_by_own_return(const TrainerSettings& trainer) {
  return trainer.stop_return && trainer.stop_on == kStopOnTraining;
}

// A return belongs to the weights that played, and the update of the same iteration has changed them by the
// time that anybody sees it (docs/design/0030-weights-that-played.md).
class PlayedWeights {
 public:
  PlayedWeights() = default;
  // `weights`: the tensors themselves, which training changes in place. Allocates.
  explicit PlayedWeights(std::vector<at::Tensor> weights) : weights_(std::move(weights)) {
    for (const at::Tensor& tensor : weights_) copies_.push_back(at::empty_like(tensor));
  }

  // Call it before each update. Enqueues.
  void keep() {
    for (std::size_t k = 0; k < weights_.size(); ++k) copies_[k].copy_(weights_[k]);
  }
  // Gives the weights their values from before the update, and keeps those from after it; or the other way
  // round.
  void exchange() {
    for (std::size_t k = 0; k < weights_.size(); ++k) {
      const at::Tensor now = weights_[k].clone();
      weights_[k].copy_(copies_[k]);
      copies_[k].copy_(now);
    }
  }
  const std::vector<at::Tensor>& copies() const { return copies_; }

 private:
  std::vector<at::Tensor> weights_, copies_;
};

}  // namespace wd
