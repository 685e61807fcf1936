// values.cu: quantiles and choices of rows as items.
#include "kernels/values_body.h"
#include "wd/kernel.h"

WD_KERNEL(dueling, DuelingArgs, dueling_of, args.rows* args.shape.quantiles, 1024, "values from advantages")
WD_KERNEL(quantile_mean, QuantileMeanArgs, quantile_mean_of, args.rows* args.shape.choices, 1024,
          "means of quantiles")
WD_KERNEL(values_backward, ValuesBackwardArgs, values_backward_of, args.rows* args.shape.quantiles, 1024,
          "gradient of values")
