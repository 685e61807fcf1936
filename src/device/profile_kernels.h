// profile_kernels.h: every kernel that runs on the GPU, torch's and ours, by CUPTI through torch's own
// profiler.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wd::profile {

struct KernelTotal {
  std::string name;  // copies and fills included: "Memcpy DtoD (Device -> Device)"
  std::int64_t calls = 0;
  double seconds = 0.0;  // on the device
};

struct KernelTrace {
  std::vector<KernelTotal> kernels;  // the longest first
  std::int64_t launches = 0;         // calls of the host: kernels one by one, copies, fills, and whole graphs

  std::int64_t kernel_calls() const;
};

// One thing that CUPTI saw.
struct KernelEvent {
  std::string name;
  bool on_device = false;  // else a call of the CUDA runtime or driver
  double seconds = 0.0;
};
KernelTrace summarize(std::span<const KernelEvent> events);

// "void at::native::kernel<float>(int)" is "at::native::kernel": what people look for.
std::string short_name(std::string_view name);

// Traces all that this process does on CUDA from construction to stop(). One at a time.
class KernelTracer {
 public:
  KernelTracer();
  ~KernelTracer();
  KernelTracer(const KernelTracer&) = delete;
  KernelTracer& operator=(const KernelTracer&) = delete;

  // The device must be done with what is to be in it.
  KernelTrace stop();

 private:
  bool running_ = false;
};

}  // namespace wd::profile
