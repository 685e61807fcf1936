// host.cpp: calls gethostname(2) and getrandom(2).
#include "src/base/host.h"

#include <sys/random.h>
#include <unistd.h>

#include <array>

#include "src/base/files.h"

namespace wd {

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string random_token() {
  std::array<unsigned char, 16> bits{};
  if (::getrandom(bits.data(), bits.size(), 0) != static_cast<ssize_t>(bits.size()))
    throw_file_error("random numbers", "get them");
  std::string text;
  for (const unsigned char byte : bits) {
    text += "0123456789abcdef"[byte >> 4U];
    text += "0123456789abcdef"[byte & 15U];
  }
  return text;
}

}  // namespace wd
