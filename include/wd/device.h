// device.h: the device that a run uses, and what it says of itself.
#pragma once

#include <string>

namespace wd {

enum class DeviceKind { kCpu, kCuda };

// What --device asks for.
enum class DeviceRequest { kAuto, kCpu, kCuda };

struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;  // among the visible GPUs

  bool is_cuda() const { return kind == DeviceKind::kCuda; }
};

// auto: a GPU where this build and this machine have one, else the CPU. Of several GPUs the local_rank-th; a
// worker that sees one alone takes it. Throws UsageError, saying what was found, when a GPU is asked for and
// there is none. The GPU is the calling thread's from here on.
Device select_device(DeviceRequest request, int local_rank = 0);

// "cpu", "cuda:0".
std::string to_string(Device device);
// For people: "CPU, 2 threads", "NVIDIA H200 (cuda:0)".
std::string describe(Device device);

}  // namespace wd
