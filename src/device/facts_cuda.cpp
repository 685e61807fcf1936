// facts_cuda.cpp: versions of the driver and of libraries, and properties of the GPUs.
#include <cuda_runtime.h>
#include <nccl.h>

#include <array>

#include "src/base/binary_path.h"
#include "src/device/gpu_cuda.h"
#include "wd/error.h"

namespace wd {
namespace {

// CUDA counts in thousands: 13000 is 13.0.
std::string cuda_version(int number) { return concat(number / 1000, ".", number % 1000 / 10); }

// NCCL: 22809 is 2.28.9.
std::string nccl_version(int number) {
  return concat(number / 10000, ".", number / 100 % 100, ".", number % 100);
}

GpuFacts::Gpu facts_of(int index, int count) {
  GpuFacts::Gpu gpu;
  cudaDeviceProp properties{};
  std::array<char, 64> place{};
  if (cudaGetDeviceProperties(&properties, index) == cudaSuccess) {
    gpu.name = properties.name;
    gpu.major = properties.major;
    gpu.minor = properties.minor;
    gpu.bytes = properties.totalGlobalMem;
  }
  if (cudaDeviceGetPCIBusId(place.data(), static_cast<int>(place.size()), index) == cudaSuccess)
    gpu.place = place.data();
  for (int other = 0; other < count; ++other) {
    int reads = 0;
    if (other != index && cudaDeviceCanAccessPeer(&reads, index, other) == cudaSuccess && reads != 0)
      gpu.peers.push_back(other);
  }
  return gpu;
}

}  // namespace

GpuFacts cuda_facts() {
  GpuFacts facts;
  int version = 0, count = 0;
  if (cudaDriverGetVersion(&version) == cudaSuccess) facts.driver = cuda_version(version);
  if (cudaRuntimeGetVersion(&version) == cudaSuccess) facts.runtime = cuda_version(version);
  if (ncclGetVersion(&version) == ncclSuccess) facts.nccl_library = nccl_version(version);
  facts.nccl_header = nccl_version(NCCL_VERSION_CODE);
  facts.architectures = WD_ARCHITECTURES;
  facts.runtime_library = binary_path(reinterpret_cast<const void*>(&cudaRuntimeGetVersion));
  if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
  for (int index = 0; index < count; ++index) facts.gpus.push_back(facts_of(index, count));
  cudaGetLastError();  // clears the error, so that a later check does not see it
  return facts;
}

}  // namespace wd
