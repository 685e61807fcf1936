// per_choice.cu: numbers as items.
#include "kernels/per_choice_body.h"
#include "wd/kernel.h"

WD_KERNEL(per_choice, PerChoiceArgs, per_choice_number, args.rows* args.shape.choices* args.shape.width(),
          16384, "rows of choices")
WD_KERNEL(per_choice_backward, PerChoiceBackwardArgs, per_choice_gradient, args.rows* args.shape.columns,
          4096, "gradient of rows of choices")
