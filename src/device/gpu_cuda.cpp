// gpu_cuda.cpp: the GPU through CUDA and torch. libwd_cuda registers it when it is loaded.
#include "src/device/gpu_cuda.h"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime.h>

#include <array>

#include "src/base/host.h"
#include "wd/error.h"

namespace wd {

namespace {

c10::cuda::CUDAStream stream_of(int index) {
  return at::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(index));
}

class CudaMilestone final : public Milestone {
 public:
  explicit CudaMilestone(int index) : index_(index) {}
  void record() override { event_.record(stream_of(index_)); }
  void wait() override { event_.synchronize(); }

 private:
  int index_;
  at::cuda::CUDAEvent event_{cudaEventDisableTiming | cudaEventBlockingSync};  // the waiting thread sleeps
};

class CudaGpu final : public Gpu {
 public:
  std::string why_unusable() override {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    cudaGetLastError();  // clears the error, so that a later check does not see it
    if (error != cudaSuccess) return std::string("the CUDA runtime says: ") + cudaGetErrorString(error);
    return count > 0 ? "" : "the CUDA driver lists no device (is CUDA_VISIBLE_DEVICES empty?)";
  }

  bool is_broken() override {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    cudaGetLastError();
    return error != cudaSuccess && error != cudaErrorNoDevice;
  }
  std::string why_unfit(int index) override {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) return "";  // the first use will say why
    return runs_on(WD_ARCHITECTURES, properties.major, properties.minor)
               ? ""
               : concat(properties.name, " has compute capability ", properties.major, ".", properties.minor,
                        ", and kernels were compiled for ", WD_ARCHITECTURES,
                        ": build with -D CMAKE_CUDA_ARCHITECTURES=", properties.major, properties.minor);
  }

  c10::DeviceType type() override { return c10::DeviceType::CUDA; }
  int count() override { return c10::cuda::device_count(); }

  std::string name(int index) override {
    cudaDeviceProp properties{};
    return cudaGetDeviceProperties(&properties, index) == cudaSuccess ? properties.name : "unknown GPU";
  }

  std::string identity(int index) override {
    std::array<char, 64> place{};
    C10_CUDA_CHECK(cudaDeviceGetPCIBusId(place.data(), static_cast<int>(place.size()), index));
    return concat("GPU ", place.data(), " of ", host_name());
  }

  std::size_t shared_memory(int index) override {
    int bytes = 0;
    C10_CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, index));
    return static_cast<std::size_t>(bytes);
  }

  GpuFacts facts() override { return cuda_facts(); }
  void use(int index) override { c10::cuda::set_device(static_cast<c10::DeviceIndex>(index)); }
  void* current_stream(int index) override { return stream_of(index).stream(); }
  void synchronize(int index) override { stream_of(index).synchronize(); }
  std::unique_ptr<Milestone> make_milestone(int index) override {
    return std::make_unique<CudaMilestone>(index);
  }

  std::int64_t peak_memory(int index) override {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(index));
    return stats.reserved_bytes[0].peak;
  }

  std::int64_t used_memory(int) override {
    std::size_t free = 0, total = 0;
    const cudaError_t error = cudaMemGetInfo(&free, &total);
    WD_CHECK(error == cudaSuccess, "the GPU's free memory cannot be read: ", cudaGetErrorString(error));
    return static_cast<std::int64_t>(total - free);
  }

  std::optional<GpuMemory> memory() override {
    try {
      if (count() == 0 || !c10::cuda::getDeviceIndexWithPrimaryContext()) return {};
    } catch (const c10::Error&) {
      return {};
    }
    std::size_t free = 0, total = 0;
    const cudaError_t error = cudaMemGetInfo(&free, &total);
    cudaGetLastError();  // clears the error
    return error == cudaSuccess ? std::optional(GpuMemory{free, total}) : std::nullopt;
  }

  std::unique_ptr<Captured> capture(const c10::Stream& stream, const std::function<void()>& enqueue,
                                    const Captured* earlier) override {
    return capture_cuda_graph(stream, enqueue, earlier);
  }
  std::unique_ptr<CallWatch> watch_calls() override { return watch_cuda_calls(); }
};

CudaGpu the_gpu;
const bool registered = (set_gpu(&the_gpu), true);

}  // namespace

}  // namespace wd
