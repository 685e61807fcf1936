// host_memory.h: host memory that this process and its children may still use, and how to tell that there is
// none.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace wd {

// Where limits are read; tests make their own.
struct MemorySources {
  std::filesystem::path proc = "/proc", cgroups = "/sys/fs/cgroup";
  std::optional<std::uint64_t> address_space = {},
                               data = {};  // [bytes] RLIMIT_AS, RLIMIT_DATA; none: unlimited
};

// This machine's files, and this process's soft limits.
MemorySources machine_memory();

struct Allowance {
  std::uint64_t bytes = 0;
  std::string source;  // whose limit it is: a file's path, "RLIMIT_AS"
};

// Everything that sets a limit: every level of the control groups (v2 and v1), less what is used there and
// cannot be reclaimed; rlimits, less what this process has; what the machine has available. Limits that
// cannot be read are left out.
std::vector<Allowance> memory_allowances(const MemorySources& sources);

// The least of them. Throws UsageError, naming the remedy, where there is none.
Allowance memory_budget(const MemorySources& sources);

// Processes that the kernel has ended for want of memory since it started; none where it does not tell.
std::optional<std::uint64_t> oom_kills(const MemorySources& sources);

// Whether the kernel has ended a process for want of memory since this was made. Where it does not tell, that
// is the likeliest end by SIGKILL.
class OomWatch {
 public:
  bool may_have_killed() const;

 private:
  std::optional<std::uint64_t> before_ = oom_kills({});
};

// From now on this process finds no more than `bytes` on the heap and in anonymous maps, beside what it has.
void limit_memory(std::uint64_t bytes);

// The exit code of a worker that found no memory.
inline constexpr int kOutOfMemoryCode = 12;  // ENOMEM

// Whether an exception says that there is no more memory, on the host or on a device.
bool is_out_of_memory(const std::exception& error);

}  // namespace wd
