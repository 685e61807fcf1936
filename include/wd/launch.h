// launch.h: for custom data-parallel programs: the launcher and the process group that wdtrain uses.
#pragma once

#include <functional>

#include "wd/detail/supervise.h"
#include "wd/process_group.h"

namespace wd {

// Runs worker(group) in options.num_workers copies of this program on each node, each with one GPU or a share
// of the CPU, and returns the exit code of all of them together (see supervise.h). If this process already is
// a worker, started by this call or by torchrun, Slurm or mpirun, it runs worker(group) and returns its exit
// code. With one worker in total, worker(group) runs in this process. Exceptions that leave worker() are
// reported and end the job, with exit code 2 for UsageError and 1 for others. Call it in main() before
// anything that starts a thread or touches CUDA. It does not change the command line, which each copy parses
// again.
int launch(const LaunchOptions& options, const std::function<int(ProcessGroup& group)>& worker);

// Connects to the other workers of a job. Reads only the time limits of `options`.
ProcessGroup join(const LaunchOptions& options, const Membership& self, Device device);

}  // namespace wd
