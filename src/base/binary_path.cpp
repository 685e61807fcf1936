// binary_path.cpp: asks the loader, and the kernel about the program itself.
#include "src/base/binary_path.h"

#include <dlfcn.h>
#include <link.h>

#include <system_error>

namespace wd {

std::filesystem::path binary_path(const void* address) {
  Dl_info info{};
  void* map = nullptr;
  if (::dladdr1(address, &info, &map, RTLD_DL_LINKMAP) == 0 || map == nullptr) return {};
  const char* const name = static_cast<const link_map*>(map)->l_name;
  std::error_code error;
  return std::filesystem::canonical(*name == '\0' ? "/proc/self/exe" : name, error);
}

}  // namespace wd
