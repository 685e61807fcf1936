// name.cpp: the rules for names.
#include "src/base/name.h"

#include <algorithm>

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

void check_name(std::string_view what, std::string_view name) {
  if (is_name(name)) return;
  throw UsageError(concat(what, " name '", shown(name), "': must be 1 to ", kLongestName,
                          " of the characters A-Z a-z 0-9 . _ - and neither . nor .."));
}

}  // namespace wd
