// returns.cu: returns on the GPU, a thread a column: neighbouring threads read neighbouring addresses at
// every step.
#include "kernels/for_each.cuh"
#include "kernels/returns_body.h"

namespace wd::cuda {

void returns(void* stream, const ReturnsArgs& args) {
  for_each<returns_column>(stream, "returns", static_cast<std::int64_t>(args.num_envs) * args.num_agents,
                           args);
}

}  // namespace wd::cuda
