// outcomes.h: the rows of steps that only begin episodes.
#pragma once

#include "wd/detail/step_view.h"

namespace wd {

// These rows without those that say how a step ended: it pays nothing and ends nothing.
inline StepView without_outcomes(StepView view) {
  view.terminated = view.truncated = view.reset_step = nullptr;
  view.statistic = nullptr;
  for (int r = 0; r < view.num_seats; ++r) {
    view.seats[r].reward = nullptr;
    view.seats[r].agent_terminated = nullptr;
  }
  return view;
}

}  // namespace wd
