// launch.cpp: decides whether this process is the launcher or a worker.
#include "wd/launch.h"

#include <algorithm>
#include <cstdlib>

#include "src/base/program_name.h"
#include "src/base/streams.h"
#include "src/worker/guarded.h"
#include "src/worker/status.h"
#include "wd/heartbeat.h"

namespace wd {

ProcessGroup join(const LaunchOptions& options, const Membership& self, Device device) {
  const double longest = std::max({options.start_seconds, options.step_seconds, options.checkpoint_seconds});
  // Under our launcher, the launcher detects hangs and names the worker that hangs, so workers wait longer
  // than it does. Under another launcher, they wait as long as rank 0 may need for a step and a checkpoint
  // together.
  const bool watched = std::getenv(launcher::kStatusVariable) != nullptr;
  const double alone = options.step_seconds + options.checkpoint_seconds;
  heartbeat::device(to_string(device));
  return {self, device, watched ? 3.0 * longest + options.grace_seconds : alone, options.start_seconds};
}

int launch(const LaunchOptions& options, const std::function<int(ProcessGroup& group)>& worker) {
  survive_closed_streams();
  heartbeat::watch_crashes();
  return guarded([&] {
    const Membership self = read_membership();
    if (self.alone() && (options.num_workers * options.num_nodes > 1 || options.max_restarts > 0))
      return supervise(options, own_command());
    const DeviceRequest request = options.gpus ? DeviceRequest::kCuda : DeviceRequest::kCpu;
    ProcessGroup group = join(options, self, select_device(request, self.local_rank));
    try {
      return worker(group);
    } catch (...) {
      report_current_exception();
      throw;
    }
  });
}

}  // namespace wd
