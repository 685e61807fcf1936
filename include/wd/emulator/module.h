// module.h: an environment on the emulated GPU, in a shared library of its own: `wdtrain check` loads it.
//
// wd_add_environment() compiles the environment a second time for it, with an instruction at each access
// (docs/design/0018-emulated-gpu.md). It is not linked into programs, so they stay as fast as they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "wd/emulator/emulation.h"
#include "wd/environment.h"

namespace wd::emulation {

// One of the two accesses of a race.
struct RaceAccess {
  std::string what;  // "writes it"
  std::string who;   // "f(3)", or "thread 3"
  std::string line;  // file:line of the access, or of its phase; empty: not known
};

// Why a step ended early.
struct StepFault {
  std::string text;
  const void* address = nullptr;  // of a race
  RaceAccess first, second;       // of a race
};

// A random number that was drawn twice.
struct RepeatedDraw {
  std::uint32_t replica = 0;
  bool in_reset = false;  // else in step()
  int agent = 0, purpose = 0;
  std::string first, second;  // for example "f(3) at ants.cu:40"
};

struct StepOptions {
  Order order = Order::kForward;
  std::uint64_t seed = 1;
  bool races = false;  // looks for races and bad accesses
  // Leaves the state where the view has it, so that addresses of faults are in its arrays; otherwise it is
  // copied to shared memory if it fits. Needs StepView::scratch.
  bool in_place = false;
  // Gets the first random number that was drawn twice in the step. Null: draws are not looked at.
  std::optional<RepeatedDraw>* repeated = nullptr;
};

// What a module exports as wd_emulated_environment().
struct Module {
  std::optional<StepFault> (*step)(const void* params, const StateLayout& layout, const StepView& view,
                                   const StepOptions& options);
};

// Runs the executor on the emulated GPU.
std::optional<StepFault> step(const CudaExecutor& executor, const void* params, const StateLayout& layout,
                              const StepView& view, const StepOptions& options);

}  // namespace wd::emulation

// Defines the function that the module of an environment exports. After WD_DEFINE_CUDA_ENVIRONMENT().
#define WD_DEFINE_EMULATED_ENVIRONMENT(name, Struct)                                                  \
  WD_DEFINE_CUDA_ENVIRONMENT(name, Struct)                                                            \
  extern "C" [[gnu::visibility("default")]] const wd::emulation::Module* wd_emulated_environment();   \
  const wd::emulation::Module* wd_emulated_environment() {                                            \
    static const wd::emulation::Module module{[](const void* params, const wd::StateLayout& layout,   \
                                                 const wd::StepView& view,                            \
                                                 const wd::emulation::StepOptions& options) {         \
      return wd::emulation::step(*wd::detail::cuda_executor_##name(), params, layout, view, options); \
    }};                                                                                               \
    return &module;                                                                                   \
  }
