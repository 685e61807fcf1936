// failure.h: how a worker failed, for people and for programs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/worker/status.h"

namespace wd::launcher {

struct Failure {
  int rank = 0, local_rank = 0;
  pid_t pid = 0;
  std::string host, device;
  std::int64_t iteration = 0;
  std::string phase;
  std::string message;
  std::string signal;            // "SIGSEGV"; empty if no signal ended it
  std::optional<int> exit_code;  // none if a signal or the launcher ended it
  bool secondary = false;        // failed only because another worker failed
  std::vector<std::string> backtrace;
  std::string time;  // UTC, ISO 8601
  int restart = 0;

  std::int64_t at_ns = 0;  // CLOCK_MONOTONIC, determines the order of failures
  int code = 1;            // exit code of the launcher if this is the root cause
};

// Returns the first failure that is not a consequence of another, or else the first one. `failures` must not
// be empty.
const Failure& root_cause(const std::vector<Failure>& failures);

// Fills the fields known from the slot, and the time. The caller fills the rest.
Failure describe_slot(const WorkerStatus& slot, std::int64_t at_ns);

// Example: "SIGSEGV".
std::string signal_name(int signal);
// Examples: "rank 3", "ranks 0, 2, 3".
std::string list_ranks(std::vector<int> ranks);

// Example: "rank 1 (process 77) failed in iteration 3, phase rollout: MESSAGE".
std::string describe(const Failure& failure);

// Summarizes the other failures and names the files with details. `run_folder` may be empty.
std::string describe_rest(const std::vector<Failure>& failures, const Failure& root,
                          const std::filesystem::path& run_folder);

// Writes error_rank_R.json for each failure, and error.json for the root cause if `root` is not null. Throws
// std::runtime_error.
void write_failures(const std::filesystem::path& run_folder, const std::vector<Failure>& failures,
                    const Failure* root);

// If rank 0 could not record the end of the run, summary.json still has the status "running". Changes it to
// "failed" and adds the reason. Throws std::runtime_error.
void mark_failed(const std::filesystem::path& run_folder, const std::string& reason);

// Returns the first failure that another node's launcher has written to the run's folder for this attempt,
// which began at `since` (UTC).
std::optional<Failure> find_remote_cause(const std::filesystem::path& run_folder, const std::string& since,
                                         int restart);

// Returns the UTC time of a CLOCK_MONOTONIC time, in milliseconds: 2026-01-31T10:20:30.123Z.
std::string utc(std::int64_t at_ns);

}  // namespace wd::launcher
