// host.cpp: calls gethostname(2) and getrandom(2).
#include "src/base/host.h"

#include <sys/random.h>
#include <unistd.h>

#include <array>

#include "src/base/files.h"
#include "src/base/hex.h"

namespace wd {

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string random_token() {
  std::array<std::uint64_t, 2> bits{};
  if (::getrandom(bits.data(), sizeof(bits), 0) != static_cast<ssize_t>(sizeof(bits)))
    throw_file_error("random numbers", "get them");
  return hex(bits[0]) + hex(bits[1]);
}

}  // namespace wd
