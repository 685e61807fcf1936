// profile_kernels.h: traces every kernel that runs on the GPU, torch's and ours, with CUPTI through torch's
// profiler.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wd::profile {

struct KernelTotal {
  std::string name;  // includes copies and fills: "Memcpy DtoD (Device -> Device)"
  std::int64_t calls = 0;
  double seconds = 0.0;  // on the device
};

struct KernelTrace {
  std::vector<KernelTotal> kernels;  // longest first
  std::int64_t launches = 0;         // calls by the host: single kernels, copies, fills, and whole graphs

  std::int64_t kernel_calls() const;
};

// One event that CUPTI reported.
struct KernelEvent {
  std::string name;
  bool on_device = false;  // otherwise a call of the CUDA runtime or driver
  double seconds = 0.0;
};
KernelTrace summarize(std::span<const KernelEvent> events);

// Shortens "void at::native::kernel<float>(int)" to "at::native::kernel", which is what users look for; a
// kernel that runs a function for each item has the function's name.
std::string short_name(std::string_view name);

// Traces all CUDA work of this process from construction to stop(). Only one may exist at a time.
class KernelTracer {
 public:
  KernelTracer();
  ~KernelTracer();
  KernelTracer(const KernelTracer&) = delete;
  KernelTracer& operator=(const KernelTracer&) = delete;

  // The device must have finished all work that the trace should contain.
  KernelTrace stop();

 private:
  bool running_ = false;
};

}  // namespace wd::profile
