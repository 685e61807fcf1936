// membership.h: what a starter (our launcher, torchrun, Slurm, OpenMPI) tells a worker of the job that it
// belongs to.
#pragma once

#include <string>

namespace wd {

// Of one worker. By default alone.
struct Membership {
  int rank = 0, world_size = 1;
  int local_rank = 0, local_world_size = 1;  // on this machine
  std::string master_addr;                   // where rank 0's store listens
  int master_port = 0;
  bool store_exists = false;  // torchrun's agent runs the store already
  int store_fd = -1;          // rank 0: a socket that listens there already
  std::string run_id,
      token;        // all ranks of a job have the same; the token is no secret to them, and is never shown
  int restart = 0;  // how often the job was started again
  std::string restart_dir;  // the run's folder to go on with, after a restart

  bool alone() const { return world_size == 1 && master_addr.empty(); }
};

// Read from the environment: RANK and WORLD_SIZE, as torchrun sets them; else SLURM_PROCID, SLURM_NTASKS and
// SLURM_LOCALID; else OMPI_COMM_WORLD_RANK, _SIZE and _LOCAL_RANK. None of them: alone. Throws UsageError
// naming the variable that is missing or wrong.
Membership read_membership();

}  // namespace wd
