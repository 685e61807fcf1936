// binary_path.cpp: asks the loader, and the kernel about the program itself.
#include "src/base/binary_path.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
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

std::vector<std::filesystem::path> library_prefixes() {
  const std::filesystem::path folder =
      binary_path(reinterpret_cast<const void*>(&library_prefixes)).parent_path();
  return {folder.parent_path(), folder.parent_path().parent_path()};
}

std::filesystem::path include_folder() {
  for (const std::filesystem::path& prefix : library_prefixes())
    if (std::filesystem::exists(prefix / "include" / "wd" / "env.h")) return prefix / "include";
  return {};
}

std::filesystem::path find_in_path(const std::string& name) {
  const auto runs = [](const std::filesystem::path& file) {
    std::error_code unreadable;
    return std::filesystem::is_regular_file(file, unreadable) && ::access(file.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) return runs(name) ? std::filesystem::absolute(name) : "";
  const char* const path = std::getenv("PATH");
  for (std::string_view left = path == nullptr || name.empty() ? "" : path; !left.empty();) {
    const std::size_t colon = std::min(left.find(':'), left.size());
    if (const std::filesystem::path file = std::filesystem::path(left.substr(0, colon)) / name; runs(file))
      return file;
    left.remove_prefix(std::min(colon + 1, left.size()));
  }
  return {};
}

}  // namespace wd
