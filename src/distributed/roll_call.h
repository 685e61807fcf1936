// roll_call.h: before anything else is done together, every worker says who it is and proves that it knows
// the job's secret, and rank 0 lets all of them go on, or says what is wrong.
//
//   wd/meet/RESTART/hello      by rank 0: a number that it has just drawn, and the run that it belongs to
//   wd/meet/RESTART/callers    how many have called
//   wd/meet/RESTART/caller/N   "RANK WORLD_SIZE LOCAL_SIZE PROCESS HOST SEAL": the seal is of number and rest
//   wd/meet/RESTART/verdict    by rank 0: "go SEAL", or "no REASON"
#pragma once

#include "src/distributed/backends.h"

namespace wd {

// Returns when all of self.world_size have come. Throws UsageError where workers contradict each other or
// belong to another run, std::runtime_error naming those that did not come within `start_s`, PeerError where
// rank 0 has found either. Shows signs of life meanwhile, so that a launcher leaves the verdict to rank 0.
void call_roll(const Store& store, const Membership& self, double start_s);

// Waits until somebody listens where rank 0 should. Throws std::runtime_error naming the place where nobody
// does.
void wait_for_rank_0(const Membership& self, double start_s);

}  // namespace wd
