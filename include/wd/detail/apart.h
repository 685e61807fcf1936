// apart.h: one replica's step with every array in memory of its own, and a note of where the environment's
// code is (wdtrain check).
#pragma once

#include <cstdint>
#include <vector>

namespace wd {

enum class EnvFunction { kNone, kReset, kDerive, kStep, kInGame, kObserve };

struct CheckPlace {
  EnvFunction function = EnvFunction::kNone;
  int phase = 0;       // of the function, counted from 1; 0: before the first
  int i = -1, j = -1;  // the iteration; -1: between phases, or a phase with one index
};

struct ApartMemory {
  std::vector<void*> fields;  // of each pointer of the State struct
  float* reward = nullptr;    // [num_agents]
  // As Actions reads them: numbers of one head from one agent to the next, `action_pitch` numbers from one
  // head to the next.
  const std::int32_t* discrete = nullptr;
  const std::int32_t* continuous = nullptr;  // floats' bits
  int action_pitch = 0;
  CheckPlace* place = nullptr;
};

}  // namespace wd
