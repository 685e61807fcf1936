// per_choice.h: rows that describe one choice each, from observations.
#pragma once

#include <cstdint>

#include "kernels/columns.h"
#include "wd/kernels/rows.h"
#include "wd/math.h"

namespace wd {

// An observation has the state, and between two parts of it, unless the descriptions are fixed, the F
// features of each of the N choices in turn.
struct PerChoiceShape {
  int columns = 0;                // of an observation
  int choices = 0, features = 0;  // N, F
  int first = 0;                  // the column of the first feature; without meaning if they are fixed
  bool fixed = false;

  WD_FN int described() const { return fixed ? 0 : choices * features; }
  WD_FN int state() const { return columns - described(); }
  WD_FN int width() const { return state() + features; }
  // The column of an observation that holds number `at` < width() of choice `choice`, or -1 if it is fixed.
  WD_FN int column(int choice, int at) const {
    if (at >= state()) return fixed ? -1 : first + choice * features + at - state();
    return fixed || at < first ? at : at + described();
  }
};

// Writes [the state, the features of a choice] for every choice of every row.
struct PerChoiceArgs {
  PerChoiceShape shape;
  ColumnsView x;  // [rows, columns]
  std::int64_t rows = 0;
  const float* fixed = nullptr;  // [choices, features], or null
  Rows<float> y;                 // [rows * choices, width]
};

// Writes the gradient of the observations.
struct PerChoiceBackwardArgs {
  PerChoiceShape shape;
  std::int64_t rows = 0;
  Rows<const float> y_grad;  // [rows * choices, width]
  Rows<float> grad;          // [rows, columns]
};

// Both enqueue.
WD_DECLARE_KERNEL(per_choice, PerChoiceArgs)
WD_DECLARE_KERNEL(per_choice_backward, PerChoiceBackwardArgs)

}  // namespace wd
