// loss.cpp: the loss on the CPU, on the calling thread: chunks of rows run in parallel above it.
#include "kernels/loss_body.h"
#include "wd/profile.h"

namespace wd {

void loss(Queue queue, const LossArgs& args) {
  if (queue.cuda) return cuda::loss(queue.stream, args);
  const profile::Scope scope("loss");
  for (std::int64_t row = 0; row < args.rows; ++row) loss_row(args, row);
}

}  // namespace wd
