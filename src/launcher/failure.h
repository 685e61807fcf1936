// failure.h: how a worker failed, as a person and a program want to know it.
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
  std::string signal;            // "SIGSEGV"; empty where none ended it
  std::optional<int> exit_code;  // none where a signal ended it, or the launcher
  bool secondary = false;        // only because another worker failed
  std::vector<std::string> backtrace;
  std::string time;  // UTC, ISO 8601
  int restart = 0;

  std::int64_t at_ns = 0;  // CLOCK_MONOTONIC: the order of failures
  int code = 1;            // what the launcher ends with if this is the cause
};

// The first of those that are no mere consequence, else the first. `failures` is not empty.
const Failure& root_cause(const std::vector<Failure>& failures);

// What the slot says, and when; the rest is the caller's.
Failure describe_slot(const WorkerStatus& slot, std::int64_t at_ns);

// "SIGSEGV"
std::string signal_name(int signal);
// "rank 3", "ranks 0, 2, 3"
std::string list_ranks(std::vector<int> ranks);

// "rank 1 (process 77) failed in iteration 3, phase rollout: MESSAGE"
std::string describe(const Failure& failure);

// What of the other failures is worth a line, and where more is to be read. `run_folder` may be empty.
std::string describe_rest(const std::vector<Failure>& failures, const Failure& root,
                          const std::filesystem::path& run_folder);

// Writes error_rank_R.json for each, and error.json for the root cause where there is one. Throws
// std::runtime_error.
void write_failures(const std::filesystem::path& run_folder, const std::vector<Failure>& failures,
                    const Failure* root);

// Where rank 0 could not say how the run ended, summary.json still says "running": it gets "failed" and the
// reason. Throws std::runtime_error.
void mark_failed(const std::filesystem::path& run_folder, const std::string& reason);

// The first failure that another node's launcher has written into the run's folder for this attempt, begun at
// `since` (UTC).
std::optional<Failure> find_remote_cause(const std::filesystem::path& run_folder, const std::string& since,
                                         int restart);

// UTC in milliseconds at a time of CLOCK_MONOTONIC: 2026-01-31T10:20:30.123Z.
std::string utc(std::int64_t at_ns);

}  // namespace wd::launcher
