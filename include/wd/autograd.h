// autograd.h: lets an algorithm of one's own use torch's autograd, for example loss.backward().
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace wd {

// While it lives, operations of this thread are recorded for backward(). The library computes its gradients
// itself, so the trainer's threads run below autograd: without this, a tensor that they compute does not
// require a gradient.
//
//   void begin_update(const wd::TrainingClock& clock) override {
//     const wd::WithAutograd autograd;
//     loss(critic_->forward(rows)).backward();
//   }
class WithAutograd {
 public:
  // record = false: with the full dispatch, but without a graph, as with torch::NoGradGuard.
  explicit WithAutograd(bool record = true)
      : keys_(c10::default_included_set, c10::default_excluded_set), mode_(record) {}

 private:
  c10::impl::ForceDispatchKeyGuard keys_;
  at::AutoGradMode mode_;
};

}  // namespace wd
