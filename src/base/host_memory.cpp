// host_memory.cpp: reads limits of cgroup v2 and v1, rlimits and /proc/meminfo.
#include "src/base/host_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <new>
#include <sstream>

#include "src/base/whole_number.h"
#include "wd/error.h"

namespace wd {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 62;  // v1 expresses "no limit" by a number near 2^63

// File names of one version of control groups.
struct Version {
  std::vector<const char*> limits;
  const char* used;
  const char* reclaimable;  // key in memory.stat
  // Key of the minimum limit of all groups above, including those that are not visible; empty if none.
  const char* hierarchical;
};
// memory.high counts as a limit, because a process beyond it is slowed down almost to a halt.
const Version kV2{{"memory.max", "memory.high"}, "memory.current", "inactive_file", ""};
const Version kV1{
    {"memory.limit_in_bytes"}, "memory.usage_in_bytes", "total_inactive_file", "hierarchical_memory_limit"};

std::uint64_t minus(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

// Reads a file that contains one number. Returns none if the file is missing or contains "max".
std::optional<std::uint64_t> read_number(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word)) return {};
  return whole_number<std::uint64_t>(word);
}

// Returns the number after `key` in a file of "KEY NUMBER ..." lines.
std::optional<std::uint64_t> read_field(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, number;
    if (words >> name >> number && name == key) return whole_number<std::uint64_t>(number);
  }
  return {};
}

std::optional<std::uint64_t> status_bytes(const fs::path& path, std::string_view key) {
  const auto kibibytes = read_field(path, key);
  if (!kibibytes) return {};
  return *kibibytes * kKiB;
}

void add_group(const fs::path& folder, const Version& version, std::vector<Allowance>& allowances) {
  const std::uint64_t used = read_number(folder / version.used).value_or(0);
  // The kernel drops pages of files when memory is needed. If they counted as used, a machine that has read
  // many files would seem full.
  const fs::path stat = folder / "memory.stat";
  const std::uint64_t held = minus(used, read_field(stat, version.reclaimable).value_or(0));
  const auto add = [&](std::optional<std::uint64_t> limit, const fs::path& source) {
    if (limit && *limit < kUnlimited) allowances.push_back({minus(*limit, held), source.string()});
  };
  for (const char* const name : version.limits) add(read_number(folder / name), folder / name);
  add(read_field(stat, version.hierarchical), stat);
}

// Adds the group and those above it. A container sees the path of its group outside the container, but only
// part of that path exists below `mount`. The longest suffix of the path that exists is used.
void add_hierarchy(const fs::path& mount, const fs::path& group, const Version& version,
                   std::vector<Allowance>& allowances) {
  std::vector<fs::path> parts;
  for (const fs::path& part : group.relative_path()) {
    if (part == "..") return add_group(mount, version, allowances);  // outside this namespace
    parts.push_back(part);
  }
  for (std::size_t first = 0; first <= parts.size(); ++first) {
    std::vector<fs::path> levels{mount};
    for (std::size_t k = first; k < parts.size(); ++k) levels.push_back(levels.back() / parts[k]);
    std::error_code unreadable;
    if (!fs::is_directory(levels.back(), unreadable)) continue;
    for (const fs::path& level : levels) add_group(level, version, allowances);
    return;
  }
}

// Lines are "ID:CONTROLLERS:PATH". Version 2 has a single line with empty CONTROLLERS.
void add_groups(const MemorySources& sources, std::vector<Allowance>& allowances) {
  std::ifstream file(sources.proc / "self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',';
    const fs::path group = line.substr(second + 1);
    if (controllers == ",,") {
      add_hierarchy(sources.cgroups, group, kV2, allowances);
    } else if (controllers.find(",memory,") != std::string::npos) {
      add_hierarchy(sources.cgroups / "memory", group, kV1, allowances);
    }
  }
}

}  // namespace

MemorySources machine_memory() {
  MemorySources sources;
  const auto soft_limit = [](auto resource) -> std::optional<std::uint64_t> {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
    return limit.rlim_cur;
  };
  sources.address_space = soft_limit(RLIMIT_AS);
  sources.data = soft_limit(RLIMIT_DATA);
  return sources;
}

std::vector<Allowance> memory_allowances(const MemorySources& sources) {
  std::vector<Allowance> allowances;
  add_groups(sources, allowances);
  // A child maps about as much as this process before it makes allocations itself.
  const fs::path status = sources.proc / "self/status";
  if (sources.address_space)
    allowances.push_back(
        {minus(*sources.address_space, status_bytes(status, "VmSize:").value_or(0)), "RLIMIT_AS"});
  if (sources.data)
    allowances.push_back({minus(*sources.data, status_bytes(status, "VmData:").value_or(0)), "RLIMIT_DATA"});
  const fs::path meminfo = sources.proc / "meminfo";
  if (const auto available = status_bytes(meminfo, "MemAvailable:"))
    allowances.push_back({*available, meminfo.string()});
  return allowances;
}

std::optional<std::uint64_t> oom_kills(const MemorySources& sources) {
  return read_field(sources.proc / "vmstat", "oom_kill");
}

bool OomWatch::may_have_killed() const {
  const std::optional<std::uint64_t> now = oom_kills({});
  return !before_ || !now || *now > *before_;
}

Allowance memory_budget(const MemorySources& sources) {
  const std::vector<Allowance> allowances = memory_allowances(sources);
  if (allowances.empty())
    throw UsageError("this machine does not tell how much memory there is: set autoscale.memory_gb");
  return *std::ranges::min_element(allowances, {}, &Allowance::bytes);
}

void limit_memory(std::uint64_t bytes) {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t pages = 0;
  for (int field = 0; field < 6; ++field) statm >> pages;  // the sixth field: data and stack
  const std::uint64_t now = statm ? pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
  rlimit limit{};
  if (::getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_cur, now + bytes);
  ::setrlimit(RLIMIT_DATA, &limit);  // if this fails, only the measured peak decides
}

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  std::string text = error.what();
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  // Messages of torch's CPU allocator, of CUDA and its libraries, and of the system.
  return std::ranges::any_of(std::array{"out of memory", "can't allocate memory", "cannot allocate memory",
                                        "status_alloc_failed", "cudaerrormemoryallocation"},
                             [&](const char* words) { return text.find(words) != std::string::npos; });
}

}  // namespace wd
