// budget.h: host memory that this process and its children may still use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace wd::scaling {

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

// From now on this process finds no more than `bytes` on the heap and in anonymous maps, beside what it has.
void limit_memory(std::uint64_t bytes);

}  // namespace wd::scaling
