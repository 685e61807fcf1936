// tensor_device.h: the device of a tensor, in our type and in torch's.
#pragma once

#include <ATen/core/Tensor.h>

#include "wd/device.h"

namespace wd {

// torch's type of a GPU. Whoever has the GPU says it (gpu.h).
at::DeviceType gpu_type();

inline Device device_holding(const at::Tensor& tensor) {
  const at::Device device = tensor.device();
  return device.type() == gpu_type() ? Device{DeviceKind::kCuda, static_cast<int>(device.index())} : Device{};
}

inline at::Device torch_device(Device device) {
  return device.is_cuda() ? at::Device(gpu_type(), static_cast<c10::DeviceIndex>(device.index))
                          : at::Device(at::kCPU);
}

}  // namespace wd
