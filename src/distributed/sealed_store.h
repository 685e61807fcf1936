// sealed_store.h: c10d's store with a proof in every value that a worker of this job wrote it.
#pragma once

#include <string>

#include "src/distributed/backends.h"

namespace wd {

// A view of `store` in which set() puts a seal (seal.h) of `session`, key and value in front of the value,
// and get() ignores values with another seal, with one warning, until the store's timeout; then it throws
// PeerError. `session` is a random number that all workers of the job know (roll_call.h). It is for the
// addresses that Gloo and NCCL publish: whoever can reach the store could otherwise send a worker to an
// address of his own. Counters, deletions and waits are passed on as they are.
Store make_sealed(Store store, std::string token, std::string session);

}  // namespace wd
