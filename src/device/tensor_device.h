// tensor_device.h: the device of a tensor, in our type and in torch's.
#pragma once

#include <ATen/core/Tensor.h>

#include "wd/device.h"

namespace wd {

inline Device device_holding(const at::Tensor& tensor) {
  return tensor.is_cuda() ? Device{DeviceKind::kCuda, static_cast<int>(tensor.get_device())} : Device{};
}

inline at::Device torch_device(Device device) {
  return device.is_cuda() ? at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device.index))
                          : at::Device(at::kCPU);
}

}  // namespace wd
