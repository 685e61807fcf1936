// ranks.h: runs the same function in several processes, which are the ranks of one job.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <vector>

#include "src/distributed/address.h"
#include "wd/process_group.h"

namespace wd {

struct RankOptions {
  bool one_machine = true;  // false: as if the ranks were on several machines
  double timeout_s = 20.0;
};

// Runs f in one fork of this process per rank; this process must not have started a thread. Expectations that
// fail in a rank fail here. Returns the exit codes in rank order: 0, or 1 if expectations failed. Calls
// refused(error) in a rank whose group cannot be created.
template <typename F>
std::vector<int> exit_codes_of_ranks(int size, F f, Device device = {},
                                     const std::function<void(const UsageError&)>& refused = {},
                                     const RankOptions& options = {}) {
  const int store = listen_on("127.0.0.1", 0);
  std::vector<pid_t> pids;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      Membership self;
      self.rank = self.local_rank = rank;
      self.world_size = size;
      self.local_world_size = options.one_machine ? size : 1;
      self.master_addr = "127.0.0.1";
      self.master_port = port_of(store);
      self.store_fd = rank == 0 ? store : -1;
      try {
        f(ProcessGroup(self, device, options.timeout_s, 20.0));
      } catch (const UsageError& error) {
        if (refused) {
          refused(error);
        } else {
          ADD_FAILURE() << "rank " << rank << ": " << error.what();
        }
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    pids.push_back(pid);
  }
  ::close(store);
  std::vector<int> codes;
  for (const pid_t pid : pids) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  return codes;
}

template <typename F>
void on_ranks(int size, F f, Device device = {}) {
  EXPECT_EQ(exit_codes_of_ranks(size, f, device), std::vector<int>(static_cast<std::size_t>(size), 0));
}

}  // namespace wd
