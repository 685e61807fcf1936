// launch.h: the options that distribute training over several workers, and the role of this process.
#pragma once

#include <string>

#include "src/cli/arguments.h"
#include "wd/config.h"
#include "wd/detail/membership.h"
#include "wd/detail/supervise.h"
#include "wd/process_group.h"

namespace wd::cli {

class LaunchArguments {
 public:
  // Adds --num_gpus, --num_workers, --num_nodes, --node_index, --rendezvous, --run_id, --max_restarts and the
  // time limits.
  void add_to(Arguments& arguments);
  // Reads the options and the environment. Throws UsageError if they contradict each other.
  void read();

  // Returns whether this process must start workers.
  bool launches() const { return launches_; }
  // This process's rank among the workers that have been started. If there are none, alone() is true.
  const Membership& membership() const { return membership_; }
  // Whether this process decides for all of the job: rank 0, and before the workers start node 0's launcher.
  bool leads() const { return membership_.rank == 0 && options_.node_index == 0; }
  // From now on this process continues nothing that an earlier start began.
  void forget_restart() { membership_.restart_dir.clear(); }
  // [s] that training may make no progress
  double step_seconds() const { return options_.step_seconds; }
  // Adds the device setting that the options imply.
  void add_overrides(std::vector<Override>& overrides) const;

  // Requests one worker on each GPU that this machine shows, if no option requests workers and `device`, the
  // configured one, allows GPUs.
  void use_all_gpus(DeviceChoice device);
  // Returns everything that was requested. `device` is the configured one.
  LaunchOptions options(DeviceChoice device) const;
  // Connects to the other workers.
  ProcessGroup join(Device device) const;
  int world_size() const;

 private:
  int gpus_ = 0, workers_ = 0, nodes_ = 0, node_ = -1;  // as given; 0 and -1: not given
  LaunchOptions options_;
  Membership membership_;
  bool asked_ = false, launches_ = false;  // asked_: an option requests workers
};

}  // namespace wd::cli
