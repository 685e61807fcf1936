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

  // The policy in these buffers, whose layout has the settings' state size and streams. `index` tells its
  // random numbers from those of other policies. Throws UsageError if the weights cannot be read.
  Policy make(const PolicyBuffers& buffers, int index, int chunk_rows, Device device,
              Precision precision) const;
};

// The configuration of a run, or of a checkpoint, whose weights can be read. Throws UsageError.
ConfigSources sources_of_run(const std::string& run);

// The policy that acts for this role in a run or a checkpoint of this environment. If several do, it is the
// one of this name, or the one named behind the path: "runs/a:NAME". Throws UsageError if there is none, or
// if its spaces are not those of the role here.
FrozenPolicy find_frozen(const std::string& path, const std::string& environment, const Spec& spec,
                         const Role& role, const std::string& policy);

}  // namespace wd
