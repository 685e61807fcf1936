// binary_path.h: the file that holds a function of the running process.
#pragma once

#include <filesystem>

namespace wd {

// Returns the absolute path of the program or shared library that contains `address`, with links resolved.
// Empty if no loaded file contains it. The path of the program comes from the kernel, because the loader only
// knows the word that started it, which may lack a folder.
std::filesystem::path binary_path(const void* address);

// The folder of the headers (wd/env.h) of this library's source tree or installation. Empty if there is none.
std::filesystem::path include_folder();

}  // namespace wd
