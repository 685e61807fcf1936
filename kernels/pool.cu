// pool.cu: heads, pieces and things of rows as items.
#include "kernels/pool_body.h"
#include "wd/kernel.h"

WD_KERNEL(attention_weights, PoolArgs, attention_weights_of, args.rows* args.shape.heads, 256,
          "attention weights")
WD_KERNEL(pool, PoolArgs, pool_piece, args.rows* pool_pieces(args.shape), 256, "pooled entities")
WD_KERNEL(attention_backward, PoolBackwardArgs, attention_backward_of, args.rows* args.shape.heads, 256,
          "gradient of attention")
WD_KERNEL(pool_backward, PoolBackwardArgs, pool_backward_of, args.rows* args.shape.things, 4096,
          "gradient of pooled entities")
