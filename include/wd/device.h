// device.h: the device that a run uses, and its description.
#pragma once

#include <string>

#include "wd/queue.h"

namespace wd {

enum class DeviceKind { kCpu, kCuda };

// The value of --device.
enum class DeviceRequest { kAuto, kCpu, kCuda };

struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;  // among the visible GPUs

  bool is_cuda() const { return kind == DeviceKind::kCuda; }
};

// kAuto: a GPU if this build and this machine have one, else the CPU. Selects the GPU with index local_rank;
// a worker that sees only one GPU takes that one. Throws UsageError, with what was found, if a GPU is
// requested and there is none. Makes the GPU current for the calling thread.
Device select_device(DeviceRequest request, int local_rank = 0);

// Where kernels run: on the device's current stream, which torch's own operations also use.
Queue current_queue(Device device);

// "cpu", "cuda:0".
std::string to_string(Device device);
// For users: "CPU, 2 threads", "NVIDIA H200 (cuda:0)".
std::string describe(Device device);

}  // namespace wd
