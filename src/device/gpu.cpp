// gpu.cpp: the GPU of the program, or none.
#include "src/device/gpu.h"

#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "src/device/tensor_device.h"
#include "wd/error.h"

namespace wd {

namespace {

class NoGpu final : public Gpu {
 public:
  std::string why_unusable() override { return reason; }
  // A driver's library or device node tells of a GPU: the reason is then one that the user can mend.
  bool is_broken() override {
    std::error_code error;
    return std::filesystem::exists("/dev/nvidia0", error) || has_driver_library;
  }
  c10::DeviceType type() override { return c10::DeviceType::CUDA; }
  int count() override { return 0; }
  std::string name(int) override { return "no GPU"; }
  std::string identity(int) override { refuse(); }
  std::size_t shared_memory(int) override { refuse(); }
  void use(int) override { refuse(); }
  void* current_stream(int) override { refuse(); }
  void synchronize(int) override { refuse(); }
  std::unique_ptr<Milestone> make_milestone(int) override { refuse(); }
  std::int64_t peak_memory(int) override { refuse(); }
  std::int64_t used_memory(int) override { refuse(); }
  std::optional<GpuMemory> memory() override { return {}; }
  std::unique_ptr<Captured> capture(const c10::Stream&, const std::function<void()>&,
                                    const Captured*) override {
    refuse();
  }
  std::unique_ptr<CallWatch> watch_calls() override { refuse(); }

  bool has_driver_library = false;
  std::string reason = "this program was built without CUDA (configure with --preset cuda)";

 private:
  [[noreturn]] void refuse() const { throw std::runtime_error("no GPU can be used: " + reason); }
};

// Not in static variables of this file, which may be initialized after the GPU's library was loaded.
NoGpu& no_gpu() {
  static NoGpu none;
  return none;
}
Gpu*& current() {
  static Gpu* gpu = &no_gpu();
  return gpu;
}

}  // namespace

Gpu& gpu() { return *current(); }
void set_gpu(Gpu* gpu) { current() = gpu; }
void set_no_gpu(const std::string& reason, bool has_driver_library) {
  no_gpu().reason = reason;
  no_gpu().has_driver_library = has_driver_library;
}

bool runs_on(const std::string& architectures, int major, int minor) {
  std::istringstream list(architectures);
  for (std::string each; std::getline(list, each, ';');) {
    const int number = std::atoi(each.c_str());
    const bool within_generation = number / 10 == major && number % 10 <= minor;
    if (each.ends_with("-real") ? within_generation : number <= 10 * major + minor) return true;
  }
  return false;
}

// --- device.h ----------------------------------------------------------------------------------------------

std::string why_no_gpu() { return gpu().why_unusable(); }
at::DeviceType gpu_type() { return gpu().type(); }
int count_gpus() { return gpu().count(); }
std::string gpu_name(int index) { return gpu().name(index); }
std::string gpu_identity(int index) { return gpu().identity(index); }
std::size_t shared_memory(Device device) { return device.is_cuda() ? gpu().shared_memory(device.index) : 0; }
void use_gpu(int index) { gpu().use(index); }

Queue current_queue(Device device) {
  if (!device.is_cuda()) return {};
  return {true, gpu().current_stream(device.index)};
}

void synchronize(Device device) {
  if (device.is_cuda()) gpu().synchronize(device.index);
}

std::unique_ptr<Milestone> make_milestone(Device device) {
  return device.is_cuda() ? gpu().make_milestone(device.index) : nullptr;
}

std::int64_t peak_memory(Device device) {
  if (device.is_cuda()) return gpu().peak_memory(device.index);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

std::int64_t used_memory(Device device) {
  return device.is_cuda() ? gpu().used_memory(device.index) : peak_memory(device);
}

std::optional<GpuMemory> gpu_memory() { return gpu().memory(); }

}  // namespace wd
