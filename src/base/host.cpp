// host.cpp: calls gethostname(2) and getrandom(2), and reads /proc/cpuinfo.
#include "src/base/host.h"

#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "src/base/files.h"
#include "src/base/hex.h"

namespace wd {

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "CPU";
}

std::string random_token() {
  std::array<std::uint64_t, 2> bits{};
  if (::getrandom(bits.data(), sizeof(bits), 0) != static_cast<ssize_t>(sizeof(bits)))
    throw_file_error("random numbers", "get them");
  return hex(bits[0]) + hex(bits[1]);
}

}  // namespace wd
