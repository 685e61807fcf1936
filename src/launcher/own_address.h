// own_address.h: the default address at which other nodes reach this one.
#pragma once

#include <string>

namespace wd::launcher {

// Returns an IPv4 address: of the interface that GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME names, otherwise
// the first that is not a loopback address, otherwise 127.0.0.1. Throws UsageError if the named interface has
// none.
std::string own_address();

}  // namespace wd::launcher
