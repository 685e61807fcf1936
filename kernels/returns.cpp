// returns.cpp: returns on the CPU, columns spread over threads.
#include "kernels/returns_body.h"
#include "wd/parallel.h"
#include "wd/profile.h"

namespace wd {

void returns(Queue queue, const ReturnsArgs& args) {
  if (queue.cuda) return cuda::returns(queue.stream, args);
  const profile::Scope scope("returns");
  const std::int64_t columns = static_cast<std::int64_t>(args.num_envs) * args.num_agents;
  parallel_for(columns, 1 + 16384 / (args.steps + 1), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t column = begin; column < end; ++column) returns_column(args, column);
  });
}

}  // namespace wd
