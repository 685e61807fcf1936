// networks.cpp: the registered networks by name.
#include "wd/detail/networks.h"

#include <utility>

#include "src/base/join.h"
#include "src/base/suggest.h"
#include "wd/error.h"

namespace wd {

namespace {

constexpr const char* kFullyConnected = "fully_connected";

std::vector<std::unique_ptr<NetworkSettings>>& registered() {
  static std::vector<std::unique_ptr<NetworkSettings>> all;
  return all;
}

}  // namespace

void register_network(std::unique_ptr<NetworkSettings> defaults) {
  const std::string name = defaults->name();
  if (contains(network_names(), name))
    throw UsageError("there are two networks called " + name + ": give one another name");
  registered().push_back(std::move(defaults));
}

std::vector<std::string> network_names() {
  std::vector<std::string> names = {kFullyConnected};
  for (const auto& network : registered()) names.emplace_back(network->name());
  return names;
}

std::unique_ptr<NetworkSettings> network_settings(const std::string& name) {
  if (name == kFullyConnected) return nullptr;
  for (const auto& network : registered())
    if (network->name() == name) return network->copy();
  throw UsageError("there is no network " + name + suggestion(name, network_names()));
}

}  // namespace wd
