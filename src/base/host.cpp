// host.cpp: gethostname(2).
#include "src/base/host.h"

#include <unistd.h>

#include <array>

namespace wd {

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace wd
