// per_choice_body.h: one number, the same code on both devices.
#pragma once

#include "kernels/columns_body.h"
#include "kernels/per_choice.h"

namespace wd {

// Item: a number of a choice of a row.
WD_FN void per_choice_number(const PerChoiceArgs& args, std::int64_t item) {
  const PerChoiceShape& shape = args.shape;
  const int width = shape.width(), at = static_cast<int>(item % width);
  const std::int64_t described = item / width, row = described / shape.choices;
  const int choice = static_cast<int>(described % shape.choices), column = shape.column(choice, at);
  args.y[described][at] = column >= 0 ? column_number(args.x, row, column)
                                      : args.fixed[choice * shape.features + at - shape.state()];
}

// Item: a column of a row.
WD_FN void per_choice_gradient(const PerChoiceBackwardArgs& args, std::int64_t item) {
  const PerChoiceShape& shape = args.shape;
  const std::int64_t row = item / shape.columns;
  const int column = static_cast<int>(item % shape.columns), behind = column - shape.first;
  const Rows<const float> from = args.y_grad.from(row * shape.choices);
  float& grad = args.grad[row][column];
  if (!shape.fixed && behind >= 0 && behind < shape.described()) {
    grad = from[behind / shape.features][shape.state() + behind % shape.features];
    return;
  }
  const int at = shape.fixed || behind < 0 ? column : column - shape.described();
  float sum = 0.0f;
  for (int i = 0; i < shape.choices; ++i) sum += from[i][at];
  grad = sum;
}

}  // namespace wd
