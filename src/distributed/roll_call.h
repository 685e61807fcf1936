// roll_call.h: before any other collective work, every worker identifies itself and proves that it knows the
// job's secret, and rank 0 lets all of them continue or says what is wrong.
//
//   wd/meet/RESTART/hello      by rank 0: "NONCE RUN_ID", a random number that it has just drawn
//   wd/meet/RESTART/callers    the number of workers that have called
//   wd/meet/RESTART/caller/N   "SEAL RANK WORLD_SIZE LOCAL_SIZE PROCESS HOST NONCE", with a number of its own
//   wd/meet/RESTART/verdict    by rank 0: "SEAL go NONCE..." with all callers' numbers, or "SEAL no REASON"
//
// Each SEAL proves that the author knows the job's token (seal.h) and rank 0's number. Anybody who reaches
// the port can write other texts: they are ignored, with a warning. Texts of an earlier job are such texts,
// because both sides draw numbers.
#pragma once

#include "src/distributed/backends.h"

namespace wd {

// Returns when all self.world_size workers have arrived, with rank 0's random number. Throws UsageError if
// workers contradict each other or belong to another run, std::runtime_error that names the workers that did
// not arrive within `start_s`, and PeerError if rank 0 has found either. Sends heartbeats meanwhile, so that
// a launcher leaves the verdict to rank 0. Rank 0 warns if workers of several machines share no token.
std::string call_roll(const Store& store, const Membership& self, double start_s);

// Waits until a process listens at rank 0's address. Throws std::runtime_error that names the address if none
// does within `start_s`.
void wait_for_rank_0(const Membership& self, double start_s);

}  // namespace wd
