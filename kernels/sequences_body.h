// sequences_body.h: one row of a minibatch of sequences, or of turns, the same code on both devices.
#pragma once

#include "kernels/sequences.h"
#include "wd/math.h"

namespace wd {

WD_FN void sequence_step(const SequenceArgs& args, std::int64_t row) {
  const std::int64_t block_rows = std::int64_t{args.length} * args.per_block;
  const std::int64_t block = row / block_rows, within = row % block_rows;
  const std::int64_t left = args.rows / args.length - block * args.per_block;
  const std::int64_t size = left < args.per_block ? left : args.per_block;
  const std::int64_t sequence = args.order[block * args.per_block + within % size];
  const std::int64_t step = sequence / args.num_envs * args.length + within / size;
  args.steps[row] = step * args.num_envs + sequence % args.num_envs;
  if (within < size) args.first[block * args.per_block + within] = args.steps[row];
}

WD_FN void teaching_row(const TeachingRowsArgs& args, std::int64_t i) {
  const std::int64_t first = 2 * args.order[i],
                     moves = first + (args.waits[first * args.choices] != 0 ? 1 : 0);
  args.row[i] = args.mask[moves] != 0 ? moves : moves ^ 1;
}

}  // namespace wd
