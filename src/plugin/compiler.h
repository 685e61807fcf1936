// compiler.h: compiles one unit to a shared library, and says what is wrong in the user's words.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/plugin/source.h"

namespace wd::plugin {

// What the environment is compiled for.
enum class Side { kCpu, kCuda, kEmulated };

struct Recipe {
  std::string unit;                          // the source that the compiler gets
  std::string linker;                        // the C++ compiler
  std::vector<std::string> command;          // to an object, without the unit and the outputs
  std::vector<std::filesystem::path> links;  // shared libraries, and archives, whose contents decide too
};

// The library that kEmulated needs, which may not exist.
std::filesystem::path emulator();

// Throws UsageError if there is no compiler, headers are not installed, or, for kCuda, there is no nvcc.
Recipe recipe_for(const Source& source, Side side);

// Writes the unit, compiles it to `module`, and returns the files that decide what that is, except those of
// the system. Throws UsageError with the lines of the user's file first; the compiler's output is in log.txt
// beside the unit.
std::vector<std::string> compile(const Source& source, const Recipe& recipe,
                                 const std::filesystem::path& unit, const std::filesystem::path& module);

}  // namespace wd::plugin
