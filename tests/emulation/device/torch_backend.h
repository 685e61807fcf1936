// torch_backend.h: what other files of the device need from torch_backend.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace wd::emulation {

// The same memory as a tensor of the CPU. It does not keep the memory.
at::Tensor host_view(const at::Tensor& tensor);

// Reports a copy or a wait to --strict_device, as CUPTI does on a GPU.
void report(const std::string& what);

}  // namespace wd::emulation
