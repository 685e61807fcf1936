// membership.cpp: reads the environment variables of torchrun, Slurm and OpenMPI.
#include "wd/detail/membership.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "src/base/whole_number.h"
#include "wd/error.h"

namespace wd {

namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int number(const char* name, int low, int high) {
  const std::string text = variable(name);
  const auto value = whole_number<int>(text);
  if (text.empty())
    throw UsageError(concat("environment variable ", name, " is missing: a worker of a job needs it"));
  if (!value || *value < low || *value > high)
    throw UsageError(concat("environment variable ", name, "=", text, ": expected a whole number in [", low,
                            ", ", high, "]"));
  return *value;
}

int number_or(const char* name, int low, int high, int otherwise) {
  return variable(name).empty() ? otherwise : number(name, low, high);
}

struct Names {
  const char *rank, *size, *local_rank, *local_size;
};
constexpr Names kTorchrun = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names kSlurm = {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"};
constexpr Names kOpenMpi = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                            "OMPI_COMM_WORLD_LOCAL_SIZE"};

constexpr int kMaxRanks = 1 << 20;

void read_ranks(const Names& names, Membership& self) {
  self.world_size = number(names.size, 1, kMaxRanks);
  self.rank = number(names.rank, 0, self.world_size - 1);
  // A shell loop that sets only RANK and WORLD_SIZE means ranks on one machine.
  self.local_rank = number_or(names.local_rank, 0, self.world_size - 1, self.rank);
  self.local_world_size = number_or(names.local_size, 1, self.world_size,
                                    variable(names.local_rank).empty() ? self.world_size : 1);
}

// Returns the first name of a node list: "node03" for "node[03-07,12],other5".
std::string first_host(const std::string& list) {
  const std::size_t bracket = list.find('[');
  if (bracket == std::string::npos || list.find(',') < bracket) return list.substr(0, list.find(','));
  const std::size_t end = list.find_first_of(",-]", bracket);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1);
}

// Slurm names the nodes. The port comes from the job's number, so that two jobs on one node do not share it
// by chance.
void read_slurm_master(Membership& self) {
  const std::string nodes =
      variable(variable("SLURM_STEP_NODELIST").empty() ? "SLURM_JOB_NODELIST" : "SLURM_STEP_NODELIST");
  self.master_addr = nodes.empty() ? "127.0.0.1" : first_host(nodes);
  constexpr int kFirstPort = 15'000, kPorts = 20'000;
  self.master_port = kFirstPort + number("SLURM_JOB_ID", 0, std::numeric_limits<int>::max()) % kPorts;
  self.run_id = concat("slurm-", variable("SLURM_JOB_ID"), "-", variable("SLURM_STEP_ID"));
}

}  // namespace

Membership read_membership() {
  Membership self;
  const bool torchrun = !variable("RANK").empty() || !variable("WORLD_SIZE").empty();
  const bool slurm =
      !torchrun && !variable("SLURM_PROCID").empty() && number_or("SLURM_NTASKS", 1, kMaxRanks, 1) > 1;
  const bool open_mpi = !torchrun && !slurm && !variable("OMPI_COMM_WORLD_RANK").empty();
  if (!torchrun && !slurm && !open_mpi) return self;
  read_ranks(torchrun ? kTorchrun : slurm ? kSlurm : kOpenMpi, self);
  if (slurm) read_slurm_master(self);
  if (!slurm || !variable("MASTER_ADDR").empty()) self.master_addr = variable("MASTER_ADDR");
  if (self.master_addr.empty())
    throw UsageError(
        "environment variable MASTER_ADDR is missing: the machine of rank 0, "
        "with MASTER_PORT a free port there");
  if (!slurm || !variable("MASTER_PORT").empty()) self.master_port = number("MASTER_PORT", 1, 65'535);
  self.store_exists = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  self.store_fd = number_or("WD_STORE_FD", 0, std::numeric_limits<int>::max(), -1);
  if (const std::string id = variable("TORCHELASTIC_RUN_ID"); !id.empty()) self.run_id = id;
  self.token = variable("WD_TOKEN");
  self.restart = number_or("TORCHELASTIC_RESTART_COUNT", 0, std::numeric_limits<int>::max(), 0);
  self.restart_dir = variable("WD_RESTART_DIR");
  return self;
}

}  // namespace wd
