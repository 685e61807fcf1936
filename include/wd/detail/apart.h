// apart.h: one replica's step with every array in separate memory, and a record of which iteration of the
// environment's code runs (wdtrain check).
#pragma once

#include <cstdint>
#include <vector>

namespace wd {

enum class EnvFunction { kNone, kReset, kDerive, kStep, kInGame, kObserve, kStreams };

struct CheckPlace {
  EnvFunction function = EnvFunction::kNone;
  int phase = 0;       // within the function, counted from 1; 0: before the first
  int i = -1, j = -1;  // indices of the iteration; i is -1 between phases, j if there is one index
};

struct ApartMemory {
  std::vector<void*> fields;  // one per pointer of the State struct
  float* reward = nullptr;    // [num_agents]
  // In the layout that Actions reads: the numbers of one head, agent after agent; `action_pitch` numbers from
  // one head to the next.
  const std::int32_t* discrete = nullptr;
  const std::int32_t* continuous = nullptr;  // floats' bits
  int action_pitch = 0;
  CheckPlace* place = nullptr;
};

}  // namespace wd
