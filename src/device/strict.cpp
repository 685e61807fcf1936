// strict.cpp: the count of violations, and the allocator that reports to it.
#include "src/device/strict.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Backtrace.h>

#include <atomic>
#include <mutex>

#include "src/device/gpu.h"
#include "wd/error.h"

namespace wd {

namespace strict {

namespace {

std::atomic<bool> counts = false;
std::atomic<int> excused = 0;
std::atomic<bool> taken = false;
std::mutex mutex;
std::int64_t violations = 0;  // guarded by the mutex, like `first`
std::string first;

// The host allocator of tensors, with a count of its allocations.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes > 0 && armed()) violation(concat("an allocation of ", bytes, " bytes of host memory"));
    return inner_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return inner_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    inner_->copy_data(to, from, bytes);
  }
  void install() {
    inner_ = c10::GetCPUAllocator();
    c10::SetCPUAllocator(this, kPriority);
  }
  void remove() { c10::SetCPUAllocator(inner_, kPriority); }

 private:
  static constexpr std::uint8_t kPriority = 200;
  c10::Allocator* inner_ = nullptr;
};

// Tensors keep no reference to it: the inner allocator's function frees their memory.
CountingAllocator allocator;

}  // namespace

bool armed() { return counts && excused == 0; }

void violation(const std::string& what) {
  const NotStrict the_message_itself;
  const std::lock_guard lock(mutex);
  if (violations++ == 0) first = what + "\n" + c10::get_backtrace(1, 24);
}

}  // namespace strict

NotStrict::NotStrict() { ++strict::excused; }
NotStrict::~NotStrict() { --strict::excused; }

struct StrictDevice::Impl {
  std::unique_ptr<CallWatch> calls;
};

StrictDevice::StrictDevice(Device device) : impl_(std::make_unique<Impl>()) {
  if (strict::taken.exchange(true))
    throw UsageError("strict_device: another training of this process uses it already");
  try {
    if (device.is_cuda()) impl_->calls = gpu().watch_calls();
  } catch (...) {
    strict::taken = false;
    throw;
  }
  strict::violations = 0;
  strict::allocator.install();
}

StrictDevice::~StrictDevice() {
  disarm();
  strict::allocator.remove();
  strict::taken = false;
}

void StrictDevice::arm() { strict::counts = true; }
void StrictDevice::disarm() { strict::counts = false; }

void StrictDevice::check() const {
  const std::lock_guard lock(strict::mutex);
  if (strict::violations == 0) return;
  throw std::runtime_error(concat("strict_device: the training loop is warm, and yet it met ",
                                  strict::violations, strict::violations == 1 ? " violation" : " violations",
                                  ", the first being ", strict::first));
}

}  // namespace wd
