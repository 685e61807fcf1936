// random_actions.cu: random actions on the GPU, one thread per row.
#include "kernels/random_actions_body.h"
#include "wd/detail/for_each.cuh"

namespace wd::cuda {

void random_actions(void* stream, const RandomActionsArgs& args) {
  for_each<random_action_row>(stream, "random_actions", args.rows, args);
}

}  // namespace wd::cuda
