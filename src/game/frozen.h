// frozen.h: policies of other runs, which play and do not learn.
#pragma once

#include <filesystem>
#include <string>

#include "wd/config.h"
#include "wd/policy.h"

namespace wd {

// A policy of a run or a checkpoint: how it was configured, and where its weights are.
struct FrozenPolicy {
  std::string path;  // as it was named
  PolicySettings settings;
  std::filesystem::path weights;
  std::string prefix = "";  // of names in that file
  // What checkpoints keep of it: the folder that was found, a hash of its weights, and its whole
  // configuration.
  std::string source, digest, config;

  // The policy in these buffers, whose layout has the settings' state size and streams. `index` tells its
  // random numbers from those of other policies. Throws UsageError if the weights cannot be read.
  Policy make(const PolicyBuffers& buffers, int index, int chunk_rows, Device device,
              Precision precision) const;
};

// The configuration of a run, or of a checkpoint, whose weights can be read. Throws UsageError.
ConfigSources sources_of_run(const std::string& run);

// A policy of a run or a checkpoint of this environment whose spaces are those of the role. If there are
// several, it is the one of this name, or the one named behind the path: "runs/a:NAME". An environment in
// Python is not started. Throws UsageError if there is none.
FrozenPolicy find_frozen(const std::string& path, const std::string& environment, const Spec& spec,
                         const Role& role, const std::string& policy);

// Those that config.checkpoint holds for this policy, in its order; none if it is empty. Throws
// std::runtime_error.
std::vector<FrozenPolicy> kept_opponents(const Config& config, const Spec& spec, const Role& role,
                                         const std::string& policy);

}  // namespace wd
