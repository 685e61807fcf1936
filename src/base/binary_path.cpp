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

std::filesystem::path include_folder() {
  const std::filesystem::path library =
      binary_path(reinterpret_cast<const void*>(&include_folder)).parent_path();
  // build/ in the project, or lib/ of an installation; lib/ARCHITECTURE/
  for (const auto& prefix : {library.parent_path(), library.parent_path().parent_path()}) {
    std::error_code error;
    if (std::filesystem::exists(prefix / "include" / "wd" / "env.h", error)) return prefix / "include";
  }
  return {};
}

}  // namespace wd
