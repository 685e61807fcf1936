// population.h: trainer.population: many trainings in one process.
#pragma once

#include <filesystem>
#include <functional>

#include "wd/config.h"
#include "wd/experiment.h"
#include "wd/process_group.h"

namespace wd::cli {

// The sources of member k, whose run folder is RUN/k: with its seed, and its values of Config::members.
ConfigSources member_sources(ConfigSources sources, const Config& config, const std::filesystem::path& run,
                             int member);

// Calls train(k) for all members k, which trains one and returns its exit code. On the CPU, as many at a time
// as there are threads, each on one; on a GPU, or with several workers, all in lockstep (src/device/lockstep.h).
// `watch` is called meanwhile. Returns the exit code: that of a member which a signal ended, else 1 if one
// failed (2 if all of these refused their settings), else 0.
int train_members(const Experiment& setup, const ProcessGroup& group,
                  const std::function<int(int member)>& train, const std::function<void()>& watch);

}  // namespace wd::cli
