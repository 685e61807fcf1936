// device.cpp: selects the device.
#include "src/device/device.h"

#include "src/device/gpu.h"
#include "wd/detail/parallel.h"
#include "wd/detail/vectors.h"
#include "wd/error.h"

namespace wd {

namespace {

// The visible GPU of a worker. A worker that sees only one GPU takes that one.
int gpu_of(int local_rank) {
  const int count = count_gpus(), index = count == 1 ? 0 : local_rank;
  if (index >= count) {
    throw UsageError(concat("local rank ", local_rank, " has no GPU: ", count, " are visible; start ", count,
                            " workers on this machine at most"));
  }
  return index;
}

}  // namespace

std::string why_no_gpu_of(int local_rank) {
  const std::string none = why_no_gpu();
  return none.empty() ? gpu().why_unfit(gpu_of(local_rank)) : none;
}

std::string why_gpu_is_left_out(int local_rank) {
  return why_no_gpu().empty() || gpu().is_broken() ? why_no_gpu_of(local_rank) : "";
}

Device select_device(DeviceRequest request, int local_rank) {
  if (request == DeviceRequest::kCpu) return {};
  const std::string obstacle = why_no_gpu_of(local_rank);
  if (obstacle.empty()) {
    const int index = gpu_of(local_rank);
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
  return concat("CPU, ", num_threads(), num_threads() == 1 ? " thread, " : " threads, ", vectors_in_words());
}

}  // namespace wd
