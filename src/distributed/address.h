// address.h: addresses of this machine, and sockets bound to them.
#pragma once

#include <string>

namespace wd {

// Returns the numeric address that this machine uses to reach the host: 127.0.0.1 for itself. Throws
// UsageError if the host is unknown or unreachable.
std::string address_towards(const std::string& host, int port);

// Opens a TCP socket that listens on that address of this machine only; port 0: any free port. Throws
// UsageError if it cannot: the address belongs to another machine, or the port is taken.
int listen_on(const std::string& host, int port);

// Returns true if a process accepts connections there. Waits at most half a second per address. Throws
// UsageError if the host is unknown.
bool is_listened_on(const std::string& host, int port);

// Returns the port of a listening socket.
int port_of(int socket);

}  // namespace wd
