// launch.h: the options that turn one training into several workers, and this process's part among them.
#pragma once

#include <string>

#include "src/cli/arguments.h"
#include "wd/config.h"
#include "wd/membership.h"
#include "wd/process_group.h"
#include "wd/supervise.h"

namespace wd::cli {

class LaunchArguments {
 public:
  // Adds --num_gpus, --num_workers, --num_nodes, --node_index, --rendezvous, --run_id, --max_restarts and the
  // limits of time.
  void add_to(Arguments& arguments);
  // Reads them and the environment. Throws UsageError where they contradict each other.
  void read();

  // Whether workers are to be started, by this process.
  bool launches() const { return launches_; }
  // This process's place among workers that have been started; alone where there are none.
  const Membership& membership() const { return membership_; }
  // How long a training may make no progress. [s]
  double step_seconds() const { return options_.step_seconds; }
  // What the options say of the device, to be added to the other settings.
  void add_overrides(std::vector<Override>& overrides) const;

  // One worker on each GPU that this machine shows, where no option asks for workers and `device`, the
  // configured one, lets it.
  void use_all_gpus(DeviceChoice device);
  // All that was asked for. `device`: the configured one.
  LaunchOptions options(DeviceChoice device) const;
  // Starts the workers, each with this process's own command line, and watches them; the exit code. `device`:
  // the configured one.
  int supervise(DeviceChoice device) const;
  // Meets the other workers.
  ProcessGroup join(Device device) const;
  int world_size() const;

 private:
  struct Texts {
    std::string num_gpus, num_workers, num_nodes, node_index, rendezvous, run_id, max_restarts, grace_seconds,
        start_seconds, step_seconds, checkpoint_seconds;
  };
  Texts texts_;
  LaunchOptions options_;
  Membership membership_;
  bool asked_ = false, launches_ = false;  // for workers by an option
};

}  // namespace wd::cli
