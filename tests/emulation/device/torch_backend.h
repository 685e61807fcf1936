// torch_backend.h: what other files of the device need from torch_backend.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <atomic>
#include <optional>
#include <string>

#include "src/device/device.h"

namespace wd::emulation {

// The same memory as a tensor of the CPU. It does not keep the memory.
at::Tensor host_view(const at::Tensor& tensor);

// Reports a copy or a wait to --strict_device, as CUPTI does on a GPU.
void report(const std::string& what);

// Times [s] that the two algorithms of each matrix product seem to take.
extern std::array<double, 2> product_seconds;

// What the emulated GPU says of its memory; nothing at first.
extern std::optional<GpuMemory> memory;

// [bytes] of tensors that exist.
extern std::atomic<std::size_t> held;

// Events that exist.
std::size_t num_events();

// Marks operations of torch that stand for one product of cuBLASLt.
class StandIn {
 public:
  StandIn();
  ~StandIn() { --depth; }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;
  static bool active() { return depth > 0; }

 private:
  inline static thread_local int depth = 0;
};

}  // namespace wd::emulation
