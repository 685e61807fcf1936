// device.cpp: choice of the device.
#include "src/device.h"

#include "wd/error.h"
#include "wd/parallel.h"

namespace wd {

Device select_device(DeviceRequest request) {
  if (request == DeviceRequest::kCpu) return {};
  const std::string obstacle = why_no_gpu();
  if (obstacle.empty()) return {DeviceKind::kCuda, 0};
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
