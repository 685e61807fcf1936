// launch.cpp: options of the launcher. The workers read their rank from the environment.
#include "src/cli/launch.h"

#include <algorithm>
#include <cstdlib>

#include "src/base/log.h"
#include "src/worker/status.h"
#include "wd/error.h"
#include "wd/launch.h"

namespace wd::cli {

namespace {

constexpr Range kWorkers = {1, 65'536}, kSeconds = {0.1, 1e6};

}  // namespace

void LaunchArguments::add_to(Arguments& arguments) {
  arguments.number("-n,--num_gpus", gpus_, kWorkers, "int", "workers on this machine, one on each GPU");
  arguments.number("--num_workers", workers_, kWorkers, "int",
                   "workers on this machine, on GPUs or CPU by --device");
  arguments.number("--num_nodes", nodes_, kWorkers, "int",
                   "number of machines; start this command on each of them");
  arguments.number("--node_index", node_, {0, kWorkers.high}, "int", "index of this machine, from 0");
  arguments.option("--rendezvous", options_.rendezvous, "ADDRESS",
                   "meeting point of the machines: tcp://HOST:PORT of machine 0, or file:///FOLDER on a "
                   "shared file system");
  arguments.option("--run_id", options_.run_id, "JOB", "several machines: name of the job, equal on all");
  arguments.number(
      "--max_restarts", options_.max_restarts, {0, 1e6}, "int",
      "maximum number of times that all workers are restarted from the newest checkpoint after one fails");
  arguments.number("--grace_seconds", options_.grace_seconds, kSeconds, "number",
                   "time that other workers have to end after one fails [s]; 5");
  arguments.number("--start_seconds", options_.start_seconds, kSeconds, "number",
                   "a worker without a sign of life for this long counts as hung: while it starts [s]; 300");
  arguments.number("--step_seconds", options_.step_seconds, kSeconds, "number",
                   "the same while it trains [s]; 120");
  arguments.number("--checkpoint_seconds", options_.checkpoint_seconds, kSeconds, "number",
                   "the same while it saves [s]; 600");
}

void LaunchArguments::read() {
  asked_ = gpus_ > 0 || workers_ > 0 || nodes_ > 0;
  if (gpus_ > 0 && workers_ > 0 && gpus_ != workers_)
    throw UsageError(
        concat("--num_gpus ", gpus_, " and --num_workers ", workers_, " contradict each other: give one"));
  options_.gpus = gpus_ > 0;
  options_.num_workers = std::max({1, gpus_, workers_});
  options_.num_nodes = std::max(1, nodes_);
  options_.node_index = std::max(0, node_);
  if (options_.num_nodes > 1 && node_ < 0)
    throw UsageError(
        concat("--num_nodes ", options_.num_nodes, " needs --node_index: which machine this is, from 0"));
  if (options_.num_nodes == 1 && !(node_ < 0 && options_.rendezvous.empty() && options_.run_id.empty()))
    throw UsageError(
        "--node_index, --rendezvous and --run_id are for several machines: give --num_nodes too");

  const bool ours = std::getenv(launcher::kStatusVariable) != nullptr,
             torchrun = std::getenv("RANK") != nullptr;
  // Inside a Slurm allocation or under mpirun, options that request workers mean workers of our own launcher.
  if (ours || torchrun || !asked_) membership_ = read_membership();
  const int wanted = options_.num_workers * options_.num_nodes;
  if (!ours && torchrun && asked_ && wanted != membership_.world_size) {
    throw UsageError(
        concat("WORLD_SIZE=", membership_.world_size,
               " is set, so that this is one of that many workers, but the options ask for ", wanted,
               ": leave out --num_gpus, --num_workers and --num_nodes, or unset RANK and WORLD_SIZE"));
  }
  launches_ = membership_.alone() && (wanted > 1 || options_.max_restarts > 0);
  if (launches_) check(options_);
}

int LaunchArguments::world_size() const {
  return launches_ ? options_.num_workers * options_.num_nodes : membership_.world_size;
}

void LaunchArguments::add_overrides(std::vector<Override>& overrides) const {
  if (!options_.gpus) return;
  for (const Override& one : overrides) {
    if (one.path == "trainer.device" && one.text != "cuda")
      throw UsageError("--num_gpus and --device " + one.text +
                       " contradict each other: workers on the CPU are --num_workers N");
  }
  overrides.push_back({"trainer.device", "cuda", "--num_gpus"});
}

void LaunchArguments::use_all_gpus(DeviceChoice device) {
  if (asked_ || device == kDeviceCpu) return;
  const std::size_t gpus = visible_gpus().size();
  if (gpus == 0) return;
  options_.gpus = true;
  options_.num_workers = static_cast<int>(gpus);
  launches_ = gpus > 1 || options_.max_restarts > 0;
}

LaunchOptions LaunchArguments::options(DeviceChoice device) const {
  LaunchOptions options = options_;
  options.gpus = device == kDeviceCuda || (device == kDeviceAuto && !visible_gpus().empty());
  return options;
}

ProcessGroup LaunchArguments::join(Device device) const {
  if (membership_.run_id.starts_with("slurm-") && membership_.rank == 0)
    logging::info(concat("worker 0 of ", membership_.world_size, " by SLURM_NTASKS: waits up to ",
                         options_.start_seconds, " s for those that srun starts; without srun, unset it"));
  return wd::join(options_, membership_, device);
}

}  // namespace wd::cli
