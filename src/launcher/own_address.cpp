// own_address.cpp: searches this machine's network interfaces.
#include "src/launcher/own_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "wd/error.h"

namespace wd::launcher {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

// Returns the interface that the user chose for collectives. Empty if none or a pattern ("^docker0") was
// given.
std::string chosen_interface() {
  for (const char* const variable : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}) {
    const char* const value = std::getenv(variable);
    std::string_view name = value == nullptr ? "" : value;
    if (name.starts_with('=')) name.remove_prefix(1);
    name = name.substr(0, name.find(','));
    if (!name.empty() && !name.starts_with('^')) return std::string(name);
  }
  return "";
}

}  // namespace

std::string own_address() {
  const std::string wanted = chosen_interface();
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return kLoopback;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    const bool works = (entry->ifa_flags & IFF_RUNNING) != 0 && (entry->ifa_flags & IFF_LOOPBACK) == 0;
    if (wanted.empty() ? !works : wanted != entry->ifa_name) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr, text.data(),
                text.size());
    return text.data();
  }
  if (wanted.empty()) return kLoopback;
  throw UsageError(concat("GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME: the interface '", wanted,
                          "' is not here or has no IPv4 address"));
}

}  // namespace wd::launcher
