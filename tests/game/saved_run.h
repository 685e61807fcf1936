// saved_run.h: the folder of a run, as training writes it, from a training of one iteration.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support.h"
#include "wd/safetensors.h"
#include "wd/trainer.h"

namespace wd {

// The folder's path. Its policies have learned for one iteration.
inline std::string save_run(const std::string& name, const std::string& env,
                            std::vector<std::string> settings) {
  settings.insert(settings.end(), {"trainer.num_envs=4", "trainer.train_batch_size=32"});
  const Experiment setup = make_setup(env, settings);
  Trainer trainer(setup.config, *setup.environment, {});
  trainer.iterate();
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "weights");
  std::ofstream(folder / "config.yaml") << print_config(setup.config, setup.describe(), false);
  for (const Policy& policy : trainer.policies()) {
    const std::vector<NamedTensor> saved = host_copies(policy.saved());
    write_safetensors(folder / "weights" / (policy.name() + ".safetensors"), views_of(saved));
  }
  return folder;
}

}  // namespace wd
