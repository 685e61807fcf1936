// budget_test.cpp: the usable memory, computed from fake cgroup and proc files.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/host_memory.h"
#include "tests/run/temporary_folder.h"
#include "wd/error.h"

namespace wd {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = 1 << 20;

class BudgetTest : public testing::Test {
 protected:
  BudgetTest() {
    sources_.proc = folder_.path / "proc";
    sources_.cgroups = folder_.path / "cgroup";
    write("proc/meminfo", "MemTotal: 16384000 kB\nMemFree: 1 kB\nMemAvailable: 8192000 kB\n");
    write("proc/self/status", "Name:\twdtrain\nVmSize:\t  204800 kB\nVmData:\t  102400 kB\n");
  }
  void write(const fs::path& path, const std::string& text) {
    fs::create_directories((folder_.path / path).parent_path());
    test::write_text(folder_.path / path, text);
  }
  void write(const fs::path& path, std::uint64_t number) { write(path, std::to_string(number) + "\n"); }
  void v2(const fs::path& group, const std::string& limit, std::uint64_t used, std::uint64_t files = 0) {
    write("cgroup" / group / "memory.max", limit + "\n");
    write("cgroup" / group / "memory.current", used);
    write("cgroup" / group / "memory.stat", "anon 5\ninactive_file " + std::to_string(files) + "\nslab 7\n");
  }
  void v1(const fs::path& group, std::uint64_t limit, std::uint64_t used) {
    write("cgroup/memory" / group / "memory.limit_in_bytes", limit);
    write("cgroup/memory" / group / "memory.usage_in_bytes", used);
  }

  test::TemporaryFolder folder_;
  MemorySources sources_;
};

TEST_F(BudgetTest, TheMachinesMemoryWhereThereAreNoGroups) {
  EXPECT_EQ(memory_budget(sources_).bytes, 8000 * kMiB);
  EXPECT_THAT(memory_budget(sources_).source, testing::EndsWith("proc/meminfo"));
}

TEST_F(BudgetTest, AGroupsLimitLessItsUse) {
  write("proc/self/cgroup", "0::/job\n");
  v2("job", std::to_string(2048 * kMiB), 48 * kMiB);
  EXPECT_EQ(memory_budget(sources_).bytes, 2000 * kMiB);
  EXPECT_THAT(memory_budget(sources_).source, testing::EndsWith("job/memory.max"));
}

TEST_F(BudgetTest, FilePagesThatCanBeDroppedAreNoUse) {
  write("proc/self/cgroup", "0::/job\n");
  v2("job", std::to_string(2048 * kMiB), 1048 * kMiB, 900 * kMiB);
  EXPECT_EQ(memory_budget(sources_).bytes, 1900 * kMiB);
}

TEST_F(BudgetTest, EveryLevelAboveCounts) {
  write("proc/self/cgroup", "0::/a/b/c\n");
  v2("a", std::to_string(1000 * kMiB), 900 * kMiB);
  v2("a/b", "max", 10 * kMiB);
  v2("a/b/c", std::to_string(500 * kMiB), 10 * kMiB);
  EXPECT_EQ(memory_budget(sources_).bytes, 100 * kMiB);
  EXPECT_EQ(memory_allowances(sources_).size(), 3U) << "two groups with limits, and the machine";
}

TEST_F(BudgetTest, HighCountsAsMaxDoes) {
  write("proc/self/cgroup", "0::/job\n");
  v2("job", std::to_string(2048 * kMiB), 0);
  write("cgroup/job/memory.high", 1024 * kMiB);
  EXPECT_EQ(memory_budget(sources_).bytes, 1024 * kMiB);
}

TEST_F(BudgetTest, InAContainerThePathFromOutsideIsCutToWhatIsThere) {
  write("proc/self/cgroup", "0::/docker/0123/own\n");
  v2("", std::to_string(700 * kMiB), 0);
  v2("own", std::to_string(600 * kMiB), 0);
  EXPECT_EQ(memory_budget(sources_).bytes, 600 * kMiB);
  write("proc/self/cgroup", "0::/docker/0123\n");
  EXPECT_EQ(memory_budget(sources_).bytes, 700 * kMiB);
  write("proc/self/cgroup", "0::/../../outside\n");
  EXPECT_EQ(memory_budget(sources_).bytes, 700 * kMiB);
}

TEST_F(BudgetTest, VersionOne) {
  write("proc/self/cgroup", "12:cpu,cpuacct:/x\n4:memory:/outer/job\n0::/y\n");
  v1("", std::uint64_t{9'223'372'036'854'771'712U}, 5);  // means no limit
  v1("outer", 900 * kMiB, 800 * kMiB);
  v1("outer/job", 400 * kMiB, 10 * kMiB);
  EXPECT_EQ(memory_budget(sources_).bytes, 100 * kMiB);
  EXPECT_EQ(memory_allowances(sources_).size(), 3U) << "outer, job and the machine";
  write("cgroup/memory/outer/memory.stat",
        "inactive_file 7\ntotal_inactive_file " + std::to_string(300 * kMiB) + "\n");
  EXPECT_EQ(memory_budget(sources_).bytes, 390 * kMiB);
  write("cgroup/memory/outer/job/memory.stat",
        "hierarchical_memory_limit " + std::to_string(210 * kMiB) + "\n");
  EXPECT_EQ(memory_budget(sources_).bytes, 200 * kMiB);
}

TEST_F(BudgetTest, AControllerOfAnotherNameIsNoMemory) {
  write("proc/self/cgroup", "4:cpu,memoryless:/job\n");
  v1("job", 4 * kMiB, 0);
  EXPECT_EQ(memory_budget(sources_).bytes, 8000 * kMiB);
}

TEST_F(BudgetTest, RlimitsLessWhatThisProcessHas) {
  sources_.address_space = 1200 * kMiB;
  EXPECT_EQ(memory_budget(sources_).bytes, 1000 * kMiB);
  EXPECT_EQ(memory_budget(sources_).source, "RLIMIT_AS");
  sources_.data = 400 * kMiB;
  EXPECT_EQ(memory_budget(sources_).bytes, 300 * kMiB);
  sources_.data = 1 * kMiB;
  EXPECT_EQ(memory_budget(sources_).bytes, 0U) << "never below nothing";
}

TEST_F(BudgetTest, WhatCannotBeReadIsLeftOut) {
  write("proc/self/cgroup", "nonsense\n0:\n0::/job\n4:memory:/job\n");
  v2("job", "a lot", 1);
  v1("job", 0, 0);
  write("cgroup/memory/job/memory.limit_in_bytes", "-1\n");
  EXPECT_EQ(memory_budget(sources_).bytes, 8000 * kMiB);
  fs::remove_all(folder_.path / "proc");
  EXPECT_THROW(memory_budget(sources_), UsageError);
}

TEST(MachineMemoryTest, ThisMachineTellsSomethingAndALimitOfThisProcessCounts) {
  EXPECT_GT(memory_budget(machine_memory()).bytes, 0U);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{64 * kMiB, RLIM_INFINITY};
    const bool limited = ::setrlimit(RLIMIT_DATA, &limit) == 0 && machine_memory().data == 64 * kMiB;
    ::_exit(limited ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace wd
