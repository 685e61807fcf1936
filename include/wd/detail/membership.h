// membership.h: what a worker learns about its job from the process that starts it (our launcher, torchrun,
// Slurm, OpenMPI).
#pragma once

#include <string>

namespace wd {

// The membership of one worker. The default is a worker alone.
struct Membership {
  int rank = 0, world_size = 1;
  int local_rank = 0, local_world_size = 1;  // on this machine
  std::string master_addr;                   // where rank 0's store listens
  int master_port = 0;
  bool store_exists = false;  // torchrun's agent already runs the store
  int store_fd = -1;          // rank 0: a socket that already listens there
  // The same on all ranks of a job. All ranks know the token; it is never shown.
  std::string run_id, token;
  int restart = 0;          // number of restarts of the job
  std::string restart_dir;  // the run's folder to continue after a restart

  bool alone() const { return world_size == 1 && master_addr.empty(); }
};

// Reads the membership from environment variables: RANK and WORLD_SIZE, as torchrun sets them; else
// SLURM_PROCID, SLURM_NTASKS and SLURM_LOCALID; else OMPI_COMM_WORLD_RANK, _SIZE and _LOCAL_RANK. Without any
// of them the worker is alone. Throws UsageError naming the variable that is missing or wrong.
Membership read_membership();

}  // namespace wd
