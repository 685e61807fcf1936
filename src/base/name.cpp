// name.cpp: the rules for names.
#include "src/base/name.h"

#include <algorithm>

#include "src/base/utf8.h"
#include "wd/error.h"

namespace wd {
namespace {

constexpr std::size_t kLongestName = 100;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-';
}

// Returns the text as a message shows it: shortened, and without control characters.
std::string shown(std::string_view text) {
  std::string result(text.substr(0, kLongestName));
  std::replace_if(result.begin(), result.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > kLongestName ? result + "..." : result;
}

}  // namespace

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && text != "." && text != ".." &&
         std::all_of(text.begin(), text.end(), is_name_character);
}

bool is_environment_name(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  constexpr std::string_view kNever = " '\"`\\$";
  const std::size_t colon = text.find(':');
  if (is_source_file(text))  // it is quoted in YAML and in C++
    return text.find_first_of("\"\\") == std::string_view::npos && config::is_utf8(text) &&
           std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 127; });
  if (colon == std::string_view::npos) return is_name(text);
  return is_name(text.substr(0, colon)) && colon + 1 < text.size() && text.size() <= kLongest &&
         std::ranges::all_of(
             text, [&](char c) { return c > ' ' && c <= '~' && kNever.find(c) == std::string_view::npos; });
}

bool is_source_file(std::string_view environment) { return environment.ends_with(".cu"); }

std::string kept_name(std::string_view environment) {
  return std::string(is_source_file(environment) ? environment.substr(environment.rfind('/') + 1)
                                                 : environment);
}

std::string folder_name(std::string_view environment) {
  if (is_source_file(environment)) {
    environment.remove_suffix(3);
    environment.remove_prefix(environment.rfind('/') + 1);
  }
  std::string name(environment.substr(0, kLongestName));
  std::ranges::replace_if(name, [](char c) { return !is_name_character(c); }, '_');
  return name;
}

void check_name(std::string_view what, std::string_view name) {
  if (is_name(name)) return;
  throw UsageError(concat(what, " name '", shown(name), "': must be 1 to ", kLongestName,
                          " of the characters A-Z a-z 0-9 . _ - and neither . nor .."));
}

}  // namespace wd
