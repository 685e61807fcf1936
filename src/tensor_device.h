// tensor_device.h: where a tensor is, in our words.
#pragma once

#include <ATen/core/Tensor.h>

#include "wd/device.h"

namespace wd {

inline Device device_holding(const at::Tensor& tensor) {
  return tensor.is_cuda() ? Device{DeviceKind::kCuda, static_cast<int>(tensor.get_device())} : Device{};
}

}  // namespace wd
