// status_memory.cpp: creates a sealed memfd.
#include "src/launcher/status_memory.h"

#include <sys/mman.h>

#include <memory>

#include "src/base/files.h"

namespace wd::launcher {
namespace {

constexpr const char* kName = "status memory of the launcher";

}  // namespace

StatusMemory::StatusMemory(int num_workers)
    : descriptor_(::memfd_create("wd_status", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  const std::size_t count = static_cast<std::size_t>(num_workers);
  if (!descriptor_ || ::ftruncate(descriptor_.get(), static_cast<off_t>(count * sizeof(WorkerStatus))) != 0 ||
      ::fcntl(descriptor_.get(), F_ADD_SEALS, kStatusSeals) != 0)
    throw_file_error(kName, "make it");
  void* const memory =
      ::mmap(nullptr, count * sizeof(WorkerStatus), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.get(), 0);
  if (memory == MAP_FAILED) throw_file_error(kName, "map it");
  slots_ = {static_cast<WorkerStatus*>(memory), count};
  std::uninitialized_default_construct(slots_.begin(), slots_.end());
}

StatusMemory::~StatusMemory() { ::munmap(slots_.data(), slots_.size_bytes()); }

}  // namespace wd::launcher
