// profile_kernels.cpp: traces kernels with torch's Kineto, which uses CUPTI.
#include "src/device/profile_kernels.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <array>
#include <map>

namespace wd::profile {
namespace {

namespace impl = torch::profiler::impl;
namespace kineto = torch::autograd::profiler;

// Calls that start work on the device: of the runtime, and of the driver below it, which libraries call
// directly.
constexpr std::array<std::string_view, 7> kLaunching = {"cudaLaunchKernel",
                                                        "cudaGraphLaunch",
                                                        "cudaMemcpyAsync",
                                                        "cudaMemsetAsync",
                                                        "cuLaunchKernel",
                                                        "cuGraphLaunch",
                                                        "cudaLaunchCooperativeKernel"};

bool launches(std::string_view call) {
  return std::ranges::any_of(kLaunching, [&](std::string_view name) { return call.starts_with(name); });
}

}  // namespace

std::int64_t KernelTrace::kernel_calls() const {
  std::int64_t calls = 0;
  for (const KernelTotal& kernel : kernels) calls += kernel.calls;
  return calls;
}

std::string short_name(std::string_view name) {
  constexpr std::string_view kVoid = "void ";
  if (name.starts_with("Memcpy") || name.starts_with("Memset")) return std::string(name);
  if (name.starts_with(kVoid)) name.remove_prefix(kVoid.size());
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  std::string text(name);
  for (std::size_t at = 0; (at = text.find(kUnnamed)) != std::string::npos;) text.erase(at, kUnnamed.size());
  // one_kernel<&(void run_item<&wd::loss_row, wd::LossArgs>(wd::LossArgs const&, long)), ...> runs loss_row.
  for (const std::string_view outer :
       {"wd::cuda::one_kernel<", "wd::cuda::several_kernel<", "wd::cuda::run_item<"}) {
    const std::size_t begin = text.starts_with(outer) ? text.find("wd::", outer.size()) : std::string::npos;
    if (begin != std::string::npos) text.erase(0, begin);
  }
  return text.substr(0, text.find_first_of("<(,"));
}

KernelTrace summarize(std::span<const KernelEvent> events) {
  KernelTrace trace;
  std::map<std::string, KernelTotal> totals;
  for (const KernelEvent& event : events) {
    if (!event.on_device) {
      trace.launches += launches(event.name) ? 1 : 0;
      continue;
    }
    KernelTotal& total = totals[short_name(event.name)];
    ++total.calls;
    total.seconds += event.seconds;
  }
  for (auto& [name, total] : totals) {
    total.name = name;
    trace.kernels.push_back(total);
  }
  std::ranges::stable_sort(trace.kernels, std::greater(), &KernelTotal::seconds);
  return trace;
}

KernelTracer::KernelTracer() {
  const impl::ProfilerConfig config(impl::ProfilerState::KINETO);
  const std::set<impl::ActivityType> activities = {impl::ActivityType::CUDA};
  kineto::prepareProfiler(config, activities);
  kineto::enableProfiler(config, activities);
  running_ = true;
}

KernelTracer::~KernelTracer() {
  if (running_) kineto::disableProfiler();
}

KernelTrace KernelTracer::stop() {
  running_ = false;
  const auto result = kineto::disableProfiler();
  std::vector<KernelEvent> events;
  for (const kineto::KinetoEvent& event : result->events()) {
    events.push_back(
        {event.name(), event.deviceType() == c10::kCUDA, 1e-9 * static_cast<double>(event.durationNs())});
  }
  return summarize(events);
}

}  // namespace wd::profile
