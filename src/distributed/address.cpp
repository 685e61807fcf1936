// address.cpp: host names, addresses and sockets, with getaddrinfo.
#include "src/distributed/address.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "wd/error.h"

namespace wd {

namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const std::string& host, int port, int type) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = type;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) throw UsageError(concat("host ", host, ": ", ::gai_strerror(error)));
  return {found, &::freeaddrinfo};
}

class Socket {
 public:
  explicit Socket(const addrinfo& address)
      : descriptor_(::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol)) {}
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

}  // namespace

std::string address_towards(const std::string& host, int port) {
  const Addresses all = resolve(host, port, SOCK_DGRAM);  // connecting a datagram socket sends nothing
  for (const addrinfo* one = all.get(); one != nullptr; one = one->ai_next) {
    const Socket socket(*one);
    sockaddr_storage own{};
    socklen_t size = sizeof(own);
    auto* const address = reinterpret_cast<sockaddr*>(&own);
    if (::connect(socket.get(), one->ai_addr, one->ai_addrlen) != 0 ||
        ::getsockname(socket.get(), address, &size) != 0)
      continue;
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0)
      return text.data();
  }
  throw UsageError(concat("host ", host, " is out of reach: ", std::strerror(errno)));
}

int listen_on(const std::string& host, int port) {
  const Addresses all = resolve(host, port, SOCK_STREAM);
  std::string why;
  for (const addrinfo* one = all.get(); one != nullptr; one = one->ai_next) {
    Socket socket(*one);
    const int yes = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (::bind(socket.get(), one->ai_addr, one->ai_addrlen) == 0 && ::listen(socket.get(), SOMAXCONN) == 0)
      return socket.release();
    why = std::strerror(errno);
  }
  throw UsageError(concat(host, ":", port, " cannot be listened on: ", why,
                          "; it must be an address of this machine, and a free port"));
}

bool is_listened_on(const std::string& host, int port) {
  constexpr int kPatience = 500;  // [ms]
  const Addresses all = resolve(host, port, SOCK_STREAM);
  for (const addrinfo* one = all.get(); one != nullptr; one = one->ai_next) {
    const Socket socket(*one);
    ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
    if (::connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0) return true;
    pollfd question{.fd = socket.get(), .events = POLLOUT, .revents = 0};
    int cause = errno;
    socklen_t size = sizeof(cause);
    if (cause == EINPROGRESS && ::poll(&question, 1, kPatience) == 1 &&
        ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &cause, &size) == 0 && cause == 0)
      return true;
  }
  return false;
}

int port_of(int socket) {
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  auto* const address = reinterpret_cast<sockaddr*>(&own);
  std::array<char, NI_MAXSERV> port{};
  WD_CHECK(::getsockname(socket, address, &size) == 0 &&
               ::getnameinfo(address, size, nullptr, 0, port.data(), port.size(), NI_NUMERICSERV) == 0,
           "a socket has no port");
  return std::stoi(port.data());
}

}  // namespace wd
