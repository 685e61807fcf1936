// home_folder.h: the folders below which programs keep their files (XDG Base Directory Specification).
#pragma once

#include <cstdlib>
#include <filesystem>

namespace wd {

// $VARIABLE, or else $HOME/`below`; empty if neither variable is an absolute path.
inline std::filesystem::path home_folder(const char* variable, const char* below) {
  for (const char* const name : {variable, "HOME"}) {
    const char* const value = std::getenv(name);
    const std::filesystem::path path = value == nullptr ? "" : value;
    if (path.is_absolute()) return name == variable ? path : path / below;
  }
  return {};
}

}  // namespace wd
