// torch_backend.h: tensors of the emulated GPU as tensors of the host.
#pragma once

#include <ATen/core/Tensor.h>

namespace wd::emulation {

// The same memory as a tensor of the CPU. It does not keep the memory.
at::Tensor host_view(const at::Tensor& tensor);

}  // namespace wd::emulation
