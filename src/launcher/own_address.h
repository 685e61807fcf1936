// own_address.h: where other nodes find this one, if nobody said it.
#pragma once

#include <string>

namespace wd::launcher {

// An IPv4 address: of the interface that GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME names, else the first that
// is no loopback, else 127.0.0.1. Throws UsageError where the named interface has none.
std::string own_address();

}  // namespace wd::launcher
