// out_of_memory.cpp: judges an error by its text and by the memory that is left.
#include "src/device/out_of_memory.h"

#include <algorithm>

#include "src/base/host_memory.h"
#include "wd/error.h"

namespace wd {

bool is_full(const GpuMemory& memory) {
  constexpr std::uint64_t kLittle = std::uint64_t{1} << 30, kParts = 50;
  return memory.free < std::max(kLittle, memory.total / kParts);
}

bool ran_out_of_memory(const std::exception& error) {
  if (is_out_of_memory(error)) return true;
  if (dynamic_cast<const UsageError*>(&error) != nullptr) return false;
  const std::optional<GpuMemory> memory = gpu_memory();
  return memory && is_full(*memory);
}

}  // namespace wd
