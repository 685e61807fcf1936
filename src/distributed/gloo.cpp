// gloo.cpp: the only file that includes Gloo's headers. They are Debian's, older than the Gloo within torch,
// so nothing of Gloo itself may be instantiated here.
#include <cstdlib>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "src/distributed/backends.h"

namespace wd {

Backend make_gloo(const Store& store, const Membership& self, const std::string& address,
                  std::chrono::milliseconds timeout) {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  const char* const interface = std::getenv("GLOO_SOCKET_IFNAME");
  options->devices.push_back(interface != nullptr && *interface != '\0'
                                 ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
                                 : c10d::ProcessGroupGloo::createDeviceForHostname(address));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, self.rank, self.world_size, options);
}

}  // namespace wd
