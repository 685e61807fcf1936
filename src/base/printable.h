// printable.h: makes text from elsewhere safe to print on a terminal.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace wd {

// Replaces control characters. A message may quote a file or a worker that was crafted to control the user's
// terminal.
inline std::string without_controls(std::string_view message) {
  std::string text(message);
  const auto harmful = [](unsigned char c) { return (c < ' ' && c != '\n' && c != '\t') || c == 0x7f; };
  std::replace_if(text.begin(), text.end(), harmful, '?');
  return text;
}

inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace wd
