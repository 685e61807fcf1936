// device_emulated.cpp: the emulated GPU as the device of a training.
#include <sys/resource.h>

#include <cstdlib>

#include "src/base/host.h"
#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "src/emulator/streams.h"
#include "tests/emulation/device/torch_backend.h"
#include "wd/error.h"

namespace wd {

std::string why_no_gpu() { return ""; }
std::string gpu_name(int) { return "emulated GPU"; }
// The launcher names a worker's GPU in CUDA_VISIBLE_DEVICES.
std::string gpu_identity(int) {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return concat("emulated GPU ", visible == nullptr ? "" : visible, " of ", host_name());
}
void use_gpu(int) {}
int count_gpus() { return 1; }
std::size_t shared_memory(Device) { return emulation::opt_in_shared(); }
at::DeviceType gpu_type() { return at::kPrivateUse1; }

Queue current_queue(Device device) {
  if (!device.is_cuda()) return {};
  return {true, &emulation::stream(emulation::current_stream())};
}

void synchronize(Device device) {
  if (!device.is_cuda()) return;
  emulation::report("the host waits for the device");
  emulation::stream(emulation::current_stream()).synchronize();
}

namespace {

class EmulatedMilestone final : public Milestone {
 public:
  void record() override { event_.record(emulation::stream(emulation::current_stream())); }
  void wait() override {
    emulation::report("the host waits for the device");
    event_.synchronize();
  }

 private:
  emulation::Event event_;
};

}  // namespace

std::unique_ptr<Milestone> make_milestone(Device device) {
  return device.is_cuda() ? std::make_unique<EmulatedMilestone>() : nullptr;
}

std::optional<GpuMemory> gpu_memory() { return {}; }

std::int64_t peak_memory(Device) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

std::int64_t used_memory(Device device) { return peak_memory(device); }

}  // namespace wd
