// gpu.h: what a GPU does for the rest of the program. libwd_cuda (*_cuda.cpp) implements it with CUDA; libwd
// loads that library where a driver is installed (load_cuda.cpp). Tests have an emulated GPU instead.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/Stream.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/device/device.h"

namespace wd {

// Device work that has been captured.
class Captured {
 public:
  virtual ~Captured() = default;
  virtual void replay() = 0;  // on the current stream
};

// Reports forbidden calls to strict::violation() until it is destroyed.
class CallWatch {
 public:
  virtual ~CallWatch() = default;
};

// What `wdtrain doctor` reports.
struct GpuFacts {
  struct Gpu {
    std::string name, place;   // "NVIDIA H200", "0000:3B:00.0"
    int major = 0, minor = 0;  // compute capability
    std::uint64_t bytes = 0;
    std::vector<int> peers;  // GPUs whose memory it reads directly
  };
  std::string driver, runtime, nccl_header, nccl_library;  // versions
  std::string architectures;                               // that kernels were compiled for: "80;90"
  std::filesystem::path runtime_library;                   // the file of libcudart
  std::vector<Gpu> gpus;
};

// See device.h for the functions of the same names.
class Gpu {
 public:
  virtual ~Gpu() = default;

  virtual std::string why_unusable() = 0;
  // Whether the machine seems to have a GPU although none is usable.
  virtual bool is_broken() { return false; }
  // Why this one of the usable GPUs cannot run our kernels; empty if it can.
  virtual std::string why_unfit(int /*index*/) { return ""; }
  virtual c10::DeviceType type() = 0;
  virtual int count() = 0;
  virtual std::string name(int index) = 0;
  virtual std::string identity(int index) = 0;
  virtual std::size_t shared_memory(int index) = 0;
  virtual void use(int index) = 0;
  virtual GpuFacts facts() { return {}; }

  virtual void* current_stream(int index) = 0;
  virtual void synchronize(int index) = 0;
  virtual std::unique_ptr<Milestone> make_milestone(int index) = 0;

  virtual std::int64_t peak_memory(int index) = 0;
  virtual std::int64_t used_memory(int index) = 0;
  virtual std::optional<GpuMemory> memory() = 0;

  // Captures what `enqueue` enqueues on the stream. If `earlier` is not null, the capture shares its memory:
  // the two never run at the same time. Throws std::runtime_error if it cannot be captured.
  virtual std::unique_ptr<Captured> capture(const c10::Stream& stream, const std::function<void()>& enqueue,
                                            const Captured* earlier) = 0;
  // Throws UsageError if calls cannot be watched.
  virtual std::unique_ptr<CallWatch> watch_calls() = 0;
};

// The GPU of this program; without one, an object that says why it is unusable.
Gpu& gpu();
// Called once, when the library that has the GPU is loaded.
void set_gpu(Gpu* gpu);
// Why there is none. `has_driver_library`: although NVIDIA's driver library is installed.
void set_no_gpu(const std::string& reason, bool has_driver_library);
// Whether code compiled for `architectures` ("80;90", each as machine code and as PTX; "90-real": as machine
// code alone) runs on a GPU of this compute capability.
bool runs_on(const std::string& architectures, int major, int minor);

}  // namespace wd
