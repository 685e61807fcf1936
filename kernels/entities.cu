// entities.cu: a row per item, or a thing of a row.
#include "kernels/entities_body.h"
#include "wd/kernel.h"

WD_KERNEL(entities, EntitiesArgs, entities_row, args.rows, 256, "features of entities")
WD_KERNEL(entities_backward, EntitiesBackwardArgs, entities_row_backward, args.rows, 256,
          "gradient of entities")
WD_KERNEL(things, ThingsArgs, thing_of, args.rows* args.shape.things(), 4096, "things of entities")
WD_KERNEL(things_backward, ThingsBackwardArgs, things_row_backward, args.rows, 256, "gradient of things")
