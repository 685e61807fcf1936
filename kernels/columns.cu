// columns.cu: pieces of columns, and numbers, as items.
#include "kernels/columns_body.h"
#include "wd/kernel.h"

WD_KERNEL(column_moments, ColumnMomentsArgs, column_moments_of,
          args.rows > 0 ? std::int64_t{kColumnParts} * column_pieces(args.columns) : 0, 4,
          "moments of columns")
WD_KERNEL(add_column_moments, ColumnMomentsArgs, add_column_parts, args.rows > 0 ? 3 * args.columns : 0, 4096,
          "moments of columns")
WD_KERNEL(standardize, StandardizeArgs, standardize_number, args.rows* args.columns, 16384, "standardization")
WD_KERNEL(standardize_backward, StandardizeBackwardArgs, standardize_gradient, args.rows* args.num_scaled,
          16384, "gradient of standardization")
