// sequences.h: the rows of a minibatch of sequences, in the order of back-propagation through time, and
// those of a minibatch of a game with turns.
#pragma once

#include <cstdint>

#include "wd/queue.h"

namespace wd {

// Sequence s = k E + e of `order` consists of steps k L .. (k + 1) L - 1 of replica e. The sequences are
// divided into blocks of per_block sequences; the last block has the rest. Within a block, all steps t come
// before all steps t + 1.
struct SequenceArgs {
  std::int64_t rows = 0;  // L per sequence
  int length = 1;         // L
  int per_block = 1;
  int num_envs = 1;                     // E
  const std::int64_t* order = nullptr;  // [rows / L]
  std::int64_t* steps = nullptr;        // [rows]: step and replica, as t E + e
  std::int64_t* first = nullptr;        // [rows / L]: the same of each sequence's first step
};

// Enqueues.
WD_DECLARE_KERNEL(sequence_steps, SequenceArgs)

// In a game of two agents with turns, of each step the row of who moves, or, if somebody else moves, the
// other.
struct TeachingRowsArgs {
  std::int64_t rows = 0;
  const std::int64_t* order = nullptr;  // [rows]: step and replica, as t E + e
  const std::uint8_t* mask = nullptr;   // [T, E, 2]: whether the row teaches
  const std::uint8_t* waits = nullptr;  // [T, E, 2, choices]: not 0 where the agent waits
  int choices = 0;
  std::int64_t* row = nullptr;  // [rows]: 2 (t E + e), or one more
};

// Enqueues.
WD_DECLARE_KERNEL(teaching_rows, TeachingRowsArgs)

}  // namespace wd
