// population.h: trainer.population: many trainings in one process.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "wd/config.h"
#include "wd/experiment.h"
#include "wd/process_group.h"

namespace wd::cli {

// The sources of member k, whose run folder is RUN/k: with its seed, and its values of Config::members.
ConfigSources member_sources(ConfigSources sources, const Config& config, const std::filesystem::path& run,
                             int member);

// Calls train(k) for all members k, which trains one and returns its exit code. On the CPU, as many at a time
// as there are threads, each on one; on a GPU, or with several workers, all in lockstep
// (src/device/lockstep.h). `watch` is called meanwhile. Returns the exit codes: 1 of a member that failed, 2
// if it refused its settings. Among several workers, throws what ended one member, because the other workers
// wait for it there: the process must end then, since the threads of the others stay where they are.
std::vector<int> train_members(const Experiment& setup, const ProcessGroup& group,
                               const std::function<int(int member)>& train,
                               const std::function<void()>& watch);

// Of all: that of a member which a signal ended, else 1 if one failed (2 if all of these refused their
// settings), else 0.
int exit_code_of(const std::vector<int>& codes);

}  // namespace wd::cli
