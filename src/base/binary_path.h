// binary_path.h: the file that holds a function of the running process.
#pragma once

#include <filesystem>
#include <string>

namespace wd {

// Returns the absolute path of the program or shared library that contains `address`, with links resolved.
// Empty if no loaded file contains it. The path of the program comes from the kernel, because the loader only
// knows the word that started it, which may lack a folder.
std::filesystem::path binary_path(const void* address);

// The folder of the headers of this library, in the project or an installation. Empty: there is none.
std::filesystem::path include_folder();

// The path of a program that PATH has, or of `name` itself if that has a slash. Empty: there is none.
std::filesystem::path find_in_path(const std::string& name);

}  // namespace wd
