// device_cuda.cpp: the device in a build with CUDA.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime.h>
#include <sys/resource.h>

#include <array>

#include "src/base/host.h"
#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "wd/error.h"

namespace wd {

std::string why_no_gpu() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  cudaGetLastError();  // clears the error, so that a later check does not see it
  if (error != cudaSuccess) return std::string("the CUDA runtime says: ") + cudaGetErrorString(error);
  return count > 0 ? "" : "the CUDA driver lists no device (is CUDA_VISIBLE_DEVICES empty?)";
}

std::string gpu_name(int index) {
  cudaDeviceProp properties{};
  return cudaGetDeviceProperties(&properties, index) == cudaSuccess ? properties.name : "unknown GPU";
}

std::string gpu_identity(int index) {
  std::array<char, 64> place{};
  C10_CUDA_CHECK(cudaDeviceGetPCIBusId(place.data(), static_cast<int>(place.size()), index));
  return concat("GPU ", place.data(), " of ", host_name());
}

std::size_t shared_memory(Device device) {
  int bytes = 0;
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device.index));
  return static_cast<std::size_t>(bytes);
}

void use_gpu(int index) { c10::cuda::set_device(static_cast<c10::DeviceIndex>(index)); }

at::DeviceType gpu_type() { return at::kCUDA; }

int count_gpus() { return c10::cuda::device_count(); }

Queue current_queue(Device device) {
  if (!device.is_cuda()) return {};
  return {true, at::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device.index)).stream()};
}

void synchronize(Device device) {
  if (device.is_cuda())
    at::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device.index)).synchronize();
}

namespace {

class CudaMilestone final : public Milestone {
 public:
  explicit CudaMilestone(Device device) : device_(device) {}
  void record() override {
    event_.record(at::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device_.index)));
  }
  void wait() override { event_.synchronize(); }

 private:
  Device device_;
  at::cuda::CUDAEvent event_{cudaEventDisableTiming | cudaEventBlockingSync};  // the waiting thread sleeps
};

}  // namespace

std::unique_ptr<Milestone> make_milestone(Device device) {
  return device.is_cuda() ? std::make_unique<CudaMilestone>(device) : nullptr;
}

std::int64_t peak_memory(Device device) {
  if (device.is_cuda()) {
    const auto stats =
        c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device.index));
    return stats.reserved_bytes[0].peak;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

std::int64_t used_memory(Device device) {
  if (!device.is_cuda()) return peak_memory(device);
  std::size_t free = 0, total = 0;
  const cudaError_t error = cudaMemGetInfo(&free, &total);
  WD_CHECK(error == cudaSuccess, "the GPU's free memory cannot be read: ", cudaGetErrorString(error));
  return static_cast<std::int64_t>(total - free);
}

std::optional<GpuMemory> gpu_memory() {
  try {
    if (count_gpus() == 0 || !c10::cuda::getDeviceIndexWithPrimaryContext()) return {};
  } catch (const c10::Error&) {
    return {};
  }
  std::size_t free = 0, total = 0;
  const cudaError_t error = cudaMemGetInfo(&free, &total);
  cudaGetLastError();  // clears the error
  return error == cudaSuccess ? std::optional(GpuMemory{free, total}) : std::nullopt;
}

}  // namespace wd
