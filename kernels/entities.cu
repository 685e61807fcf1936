// entities.cu: one row per item.
#include "kernels/entities_body.h"
#include "kernels/kernel.h"

WD_KERNEL(entities, EntitiesArgs, entities_row, args.rows, 256, "features of entities")
WD_KERNEL(entities_backward, EntitiesBackwardArgs, entities_row_backward, args.rows, 256,
          "gradient of entities")
