// printable.h: makes text from elsewhere safe to print on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace wd {

// Replaces control characters other than line ends and tabs, also those of 8 bits (U+0080 to U+009F, in UTF-8
// or as single bytes). A message may quote a file or a worker that was crafted to control the user's
// terminal.
std::string without_controls(std::string_view message);

// The same, and replaces line ends and tabs too: for names within a line or a table.
std::string on_one_line(std::string_view text);

inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace wd
