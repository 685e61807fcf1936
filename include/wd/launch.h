// launch.h: data-parallel programs of your own: the launcher and the process group that wdtrain uses.
#pragma once

#include <functional>

#include "wd/process_group.h"
#include "wd/supervise.h"

namespace wd {

// Runs worker(group) in options.num_workers copies of this program on each node, one GPU or a share of the
// CPU each, and returns the exit code of them all (supervise.h says which). Where this process is a worker
// already, started by this call or by torchrun, Slurm or mpirun, it is worker(group) that runs, and its exit
// code that comes back; with one worker in all, it runs right here. Exceptions that leave worker() are told
// and end the job: 2 for UsageError, 1 for others. Call it in main() before anything that starts a thread or
// touches CUDA; the command line stays as it is, and each copy reads it anew.
int launch(const LaunchOptions& options, const std::function<int(ProcessGroup& group)>& worker);

// Meets the other workers of a job. options: for their limits of time.
ProcessGroup join(const LaunchOptions& options, const Membership& self, Device device);

}  // namespace wd
