// device_no_cuda.cpp: the device in a build without CUDA.
#include <sys/resource.h>

#include <stdexcept>

#include "src/device/device.h"
#include "src/device/tensor_device.h"

namespace wd {

std::string why_no_gpu() { return "this program was built without CUDA (configure with --preset cuda)"; }

std::string gpu_name(int) { return "unknown GPU"; }
std::string gpu_identity(int) { return "unknown GPU"; }
std::size_t shared_memory(Device) { return 0; }
void use_gpu(int) {}
at::DeviceType gpu_type() { return at::kCUDA; }
int count_gpus() { return 0; }

Queue current_queue(Device device) {
  if (device.is_cuda()) throw std::runtime_error(why_no_gpu());
  return {};
}

void synchronize(Device) {}

std::unique_ptr<Milestone> make_milestone(Device) { return nullptr; }

std::int64_t peak_memory(Device) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

std::int64_t used_memory(Device device) { return peak_memory(device); }

std::optional<GpuMemory> gpu_memory() { return {}; }

}  // namespace wd
