// plugin.h: what a module compiled from the source file of one environment exports (src/plugin/plugin.h),
// and how the program knows that both were compiled with the same headers.
#pragma once

#include <memory>
#include <string>

#include "wd/environment.h"

namespace wd::detail {

struct PluginFact {
  const char* name = nullptr;
  std::size_t value = 0;

  bool operator==(const PluginFact& other) const {
    return std::string_view(name) == other.name && value == other.value;
  }
};

// What both sides must agree on. Raise the first number if a virtual function changes that a module
// implements or calls.
inline constexpr PluginFact kPluginFacts[] = {
    {"the interface of environments", 1},
    {"std::string", sizeof(std::string)},
    {"wd::Environment", sizeof(Environment)},
    {"wd::Fields", sizeof(Fields)},
    {"wd::Spec", sizeof(Spec)},
    {"wd::Role", sizeof(Role)},
    {"wd::StateLayout", sizeof(StateLayout)},
    {"wd::StateField", sizeof(StateField)},
    {"wd::StepView", sizeof(StepView)},
    {"wd::SeatView", sizeof(SeatView)},
};

struct Plugin {
  const PluginFact* facts = kPluginFacts;
  std::size_t num_facts = std::size(kPluginFacts);
  std::unique_ptr<Environment> (*make)() = nullptr;  // of a module for the CPU
  const CudaExecutor* cuda = nullptr;                // of a module for a GPU
};

}  // namespace wd::detail

// Define the function that a module exports: after wd/detail/cpu_executor.h, or wd/detail/cuda_executor.cuh.
#define WD_DEFINE_PLUGIN(...)                                                      \
  extern "C" [[gnu::visibility("default")]] const wd::detail::Plugin* wd_plugin(); \
  const wd::detail::Plugin* wd_plugin() {                                          \
    static const wd::detail::Plugin plugin{__VA_ARGS__};                           \
    return &plugin;                                                                \
  }
#define WD_DEFINE_CPU_PLUGIN(name, Struct)                               \
  WD_DEFINE_PLUGIN(.make = []() -> std::unique_ptr<wd::Environment> {    \
    return std::make_unique<wd::detail::CpuEnvironment<::Struct>>(name); \
  })
#define WD_DEFINE_CUDA_PLUGIN(Struct)                                                    \
  static constexpr wd::CudaExecutor plugin_executor{wd::detail::step_on_cuda<::Struct>}; \
  WD_DEFINE_PLUGIN(.cuda = &plugin_executor)
