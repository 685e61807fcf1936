// gpu_emulated.cpp: the emulated GPU as the GPU of a program.
#include <c10/core/StreamGuard.h>
#include <sys/resource.h>

#include <cstdlib>

#include "src/base/host.h"
#include "src/device/gpu.h"
#include "src/emulator/streams.h"
#include "tests/emulation/device/torch_backend.h"
#include "wd/error.h"

namespace wd {

std::optional<GpuMemory> emulation::memory;

namespace {

emulation::Stream& current() { return emulation::stream(emulation::current_stream()); }

class EmulatedMilestone final : public Milestone {
 public:
  void record() override { event_.record(current()); }
  void wait() override {
    emulation::report("the host waits for the device");
    event_.synchronize();
  }

 private:
  emulation::Event event_;
};

class EmulatedGraph final : public Captured {
 public:
  EmulatedGraph(const c10::Stream& stream, const std::function<void()>& enqueue) {
    const c10::StreamGuard guard(stream);
    emulation::Stream& capturing = current();
    try {
      capturing.begin_capture();
      enqueue();
      graph_ = capturing.end_capture();
    } catch (const std::exception& error) {
      capturing.discard_capture();
      throw std::runtime_error(concat("an iteration could not be captured as a CUDA graph: ", error.what()));
    }
  }
  void replay() override { emulation::replay(graph_, current()); }

 private:
  std::shared_ptr<const emulation::Captured> graph_;
};

class EmulatedGpu final : public Gpu {
 public:
  std::string why_unusable() override { return ""; }
  c10::DeviceType type() override { return c10::DeviceType::PrivateUse1; }
  int count() override { return 1; }
  std::string name(int) override { return "emulated GPU"; }
  // The launcher names a worker's GPU in CUDA_VISIBLE_DEVICES.
  std::string identity(int) override {
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return concat("emulated GPU ", visible == nullptr ? "" : visible, " of ", host_name());
  }
  std::size_t shared_memory(int) override { return emulation::opt_in_shared(); }
  void use(int) override {}

  void* current_stream(int) override { return &current(); }
  void synchronize(int) override {
    emulation::report("the host waits for the device");
    current().synchronize();
  }
  std::unique_ptr<Milestone> make_milestone(int) override { return std::make_unique<EmulatedMilestone>(); }

  std::int64_t peak_memory(int) override {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return std::int64_t{usage.ru_maxrss} * 1024;
  }
  std::int64_t used_memory(int index) override { return peak_memory(index); }
  std::optional<GpuMemory> memory() override { return emulation::memory; }

  std::unique_ptr<Captured> capture(const c10::Stream& stream, const std::function<void()>& enqueue,
                                    const Captured*) override {
    return std::make_unique<EmulatedGraph>(stream, enqueue);
  }
  // Operations report to strict::violation() themselves (torch_backend.cpp).
  std::unique_ptr<CallWatch> watch_calls() override { return std::make_unique<CallWatch>(); }
};

EmulatedGpu the_gpu;
const bool registered = (set_gpu(&the_gpu), true);

}  // namespace

}  // namespace wd
