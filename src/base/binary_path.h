// binary_path.h: the file that holds a function of the running process.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace wd {

// Returns the absolute path of the program or shared library that contains `address`, with links resolved.
// Empty if no loaded file contains it. The path of the program comes from the kernel, because the loader only
// knows the word that started it, which may lack a folder.
std::filesystem::path binary_path(const void* address);

// Folders that may have the include/ and share/ of this library, which is in the build's folder in the
// project, or in lib/ or lib/ARCHITECTURE/ of an installation. The nearest one comes first.
std::vector<std::filesystem::path> library_prefixes();
// The folder of the headers of this library. Empty: there is none.
std::filesystem::path include_folder();

// The path of a program that PATH has, or of `name` itself if that has a slash. Empty: there is none.
std::filesystem::path find_in_path(const std::string& name);

}  // namespace wd
