// launch.cpp: options of the launcher. The workers read their rank from the environment.
#include "src/cli/launch.h"

#include <cstdlib>

#include "src/base/program_name.h"
#include "src/worker/status.h"
#include "wd/error.h"
#include "wd/launch.h"

namespace wd::cli {

namespace {

constexpr Range kWorkers = {1, 65'536}, kSeconds = {0.1, 1e6};

int integer(const std::string& option, const std::string& text, Range range, int otherwise) {
  return text.empty() ? otherwise : static_cast<int>(parse_integer(option, text, range));
}

double seconds(const std::string& option, const std::string& text, double otherwise) {
  return text.empty() ? otherwise : parse_number(option, text, kSeconds);
}

}  // namespace

void LaunchArguments::add_to(Arguments& arguments) {
  arguments.option("-n,--num_gpus", texts_.num_gpus, "int", "workers on this machine, one on each GPU");
  arguments.option("--num_workers", texts_.num_workers, "int",
                   "workers on this machine, on GPUs or CPU by --device");
  arguments.option("--num_nodes", texts_.num_nodes, "int",
                   "number of machines; start this command on each of them");
  arguments.option("--node_index", texts_.node_index, "int", "index of this machine, from 0");
  arguments.option("--rendezvous", texts_.rendezvous, "ADDRESS",
                   "meeting point of the machines: tcp://HOST:PORT of machine 0, or file:///FOLDER on a "
                   "shared file system");
  arguments.option("--run_id", texts_.run_id, "NAME", "several machines: name of the job, equal on all");
  arguments.option(
      "--max_restarts", texts_.max_restarts, "int",
      "maximum number of times that all workers are restarted from the newest checkpoint after one fails");
  arguments.option("--grace_seconds", texts_.grace_seconds, "number",
                   "time that other workers have to end after one fails [s]; 5");
  arguments.option("--start_seconds", texts_.start_seconds, "number",
                   "a worker without a sign of life for this long counts as hung: while it starts [s]; 300");
  arguments.option("--step_seconds", texts_.step_seconds, "number", "the same while it trains [s]; 120");
  arguments.option("--checkpoint_seconds", texts_.checkpoint_seconds, "number",
                   "the same while it saves [s]; 600");
}

void LaunchArguments::read() {
  asked_ = !texts_.num_gpus.empty() || !texts_.num_workers.empty() || !texts_.num_nodes.empty();
  options_.gpus = !texts_.num_gpus.empty();
  const int gpus = integer("--num_gpus", texts_.num_gpus, kWorkers, 1);
  options_.num_workers = integer("--num_workers", texts_.num_workers, kWorkers, gpus);
  if (options_.gpus && options_.num_workers != gpus)
    throw UsageError(concat("--num_gpus ", gpus, " and --num_workers ", options_.num_workers,
                            " contradict each other: give one"));
  options_.num_nodes = integer("--num_nodes", texts_.num_nodes, kWorkers, 1);
  options_.node_index = integer("--node_index", texts_.node_index, {0, kWorkers.high}, 0);
  if (options_.num_nodes > 1 && texts_.node_index.empty())
    throw UsageError(
        concat("--num_nodes ", options_.num_nodes, " needs --node_index: which machine this is, from 0"));
  if (options_.num_nodes == 1 &&
      !(texts_.node_index.empty() && texts_.rendezvous.empty() && texts_.run_id.empty()))
    throw UsageError(
        "--node_index, --rendezvous and --run_id are for several machines: give --num_nodes too");
  options_.rendezvous = texts_.rendezvous;
  options_.run_id = texts_.run_id;
  options_.max_restarts = integer("--max_restarts", texts_.max_restarts, {0, 1e6}, 0);
  options_.grace_seconds = seconds("--grace_seconds", texts_.grace_seconds, options_.grace_seconds);
  options_.start_seconds = seconds("--start_seconds", texts_.start_seconds, options_.start_seconds);
  options_.step_seconds = seconds("--step_seconds", texts_.step_seconds, options_.step_seconds);
  options_.checkpoint_seconds =
      seconds("--checkpoint_seconds", texts_.checkpoint_seconds, options_.checkpoint_seconds);

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

int LaunchArguments::supervise(DeviceChoice device) const {
  return wd::supervise(options(device), own_command());
}

ProcessGroup LaunchArguments::join(Device device) const { return wd::join(options_, membership_, device); }

}  // namespace wd::cli
