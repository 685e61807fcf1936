// address.h: addresses of this machine, and sockets bound to them.
#pragma once

#include <string>

namespace wd {

// The numeric address by which this machine speaks to that one: 127.0.0.1 to itself. Throws UsageError where
// the host is unknown or out of reach.
std::string address_towards(const std::string& host, int port);

// A TCP socket that listens on that address of this machine, and on no other; port 0: a free one. Throws
// UsageError where it cannot: the address is another machine's, or the port is taken.
int listen_on(const std::string& host, int port);

// Whether somebody accepts connections there, asked for half a second at most. Throws UsageError where the
// host is unknown.
bool is_listened_on(const std::string& host, int port);

// The port of a listening socket.
int port_of(int socket);

}  // namespace wd
