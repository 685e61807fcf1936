// device.cpp: selects the device.
#include "src/device/device.h"

#include "wd/detail/parallel.h"
#include "wd/error.h"

namespace wd {

Device select_device(DeviceRequest request, int local_rank) {
  if (request == DeviceRequest::kCpu) return {};
  const std::string obstacle = why_no_gpu();
  if (obstacle.empty()) {
    const int count = count_gpus(), index = count == 1 ? 0 : local_rank;
    if (index >= count) {
      throw UsageError(concat("local rank ", local_rank, " has no GPU: ", count, " are visible; start ",
                              count, " workers on this machine at most"));
    }
    use_gpu(index);
    return {DeviceKind::kCuda, index};
  }
  if (request == DeviceRequest::kAuto) return {};
  throw UsageError("device cuda: no GPU can be used: " + obstacle +
                   "; use --device cpu, or auto for the best device present");
}

std::string to_string(Device device) {
  return device.is_cuda() ? "cuda:" + std::to_string(device.index) : "cpu";
}

std::string describe(Device device) {
  if (device.is_cuda()) return gpu_name(device.index) + " (" + to_string(device) + ")";
  return "CPU, " + std::to_string(num_threads()) + (num_threads() == 1 ? " thread" : " threads");
}

}  // namespace wd
