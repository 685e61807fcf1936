// host_memory.h: determines how much host memory this process and its children may still use, and detects
// that memory has run out.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace wd {

// Where limits are read. Tests provide their own files.
struct MemorySources {
  std::filesystem::path proc = "/proc", cgroups = "/sys/fs/cgroup";
  // [bytes] RLIMIT_AS and RLIMIT_DATA; none means unlimited
  std::optional<std::uint64_t> address_space = {}, data = {};
};

// Returns the files of this machine and the soft limits of this process.
MemorySources machine_memory();

struct Allowance {
  std::uint64_t bytes = 0;
  std::string source;  // origin of the limit: a file's path or "RLIMIT_AS"
};

// Returns the remaining memory under each limit: for every level of the control groups (v2 and v1), the limit
// less the used memory that cannot be reclaimed; for each rlimit, the limit less what this process uses; and
// the memory that the machine has available. Limits that cannot be read are omitted.
std::vector<Allowance> memory_allowances(const MemorySources& sources);

// Returns the smallest allowance. Throws UsageError, naming the remedy, if there is none.
Allowance memory_budget(const MemorySources& sources);

// Number of processes that the kernel has killed since boot because memory ran out. Returns none if the
// kernel does not report it.
std::optional<std::uint64_t> oom_kills(const MemorySources& sources);

// Detects whether the kernel has killed a process because memory ran out since this object was created. If
// the kernel does not report it, may_have_killed() returns true, because that is the most likely cause of a
// SIGKILL.
class OomWatch {
 public:
  bool may_have_killed() const;

 private:
  std::optional<std::uint64_t> before_ = oom_kills({});
};

// From now on, this process can allocate at most `bytes` on the heap and in anonymous maps, in addition to
// what it has.
void limit_memory(std::uint64_t bytes);

// Exit code of a worker that ran out of memory.
inline constexpr int kOutOfMemoryCode = 12;  // ENOMEM

// Returns whether the exception says that memory has run out, on the host or on a device.
bool is_out_of_memory(const std::exception& error);

}  // namespace wd
