// source.h: the source file of an environment, before it is compiled.
#pragma once

#include <filesystem>
#include <string>

namespace wd::plugin {

struct Source {
  std::filesystem::path path;  // absolute
  std::string name;            // of the environment: that of the file, without .cu
  std::string structure;       // the struct that is the environment
};

// red_ants -> RedAnts
std::string camel_case(const std::string& name);

// Reads the file. The environment is the struct whose name is that of the file in CamelCase, or else the only
// one that begins a line. Throws UsageError if there is no such file or struct, or if a function that the
// device calls lacks WD_FN.
Source read_source(const std::filesystem::path& path);

}  // namespace wd::plugin
