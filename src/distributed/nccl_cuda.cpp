// nccl_cuda.cpp: creates the NCCL backend.
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "src/distributed/backends.h"

namespace wd {

namespace {

Backend make_nccl(const Store& store, const Membership& self, Device device,
                  std::chrono::milliseconds timeout) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  auto group = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, self.rank, self.world_size, options);
  group->setBoundDeviceId(c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device.index)));
  return group;
}

const bool registered = (make_gpu_backend = make_nccl, true);

}  // namespace

}  // namespace wd
