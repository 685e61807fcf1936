// utf8.cpp: checks bytes before the YAML parser sees them.
#include "src/base/utf8.h"

namespace wd::config {

// Table 3-7 of the Unicode standard.
std::size_t letter_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  const auto in = [&](std::size_t i, int low, int high) { return byte(i) >= low && byte(i) <= high; };
  if (byte(0) < 0x80) return 1;
  if (in(0, 0xc2, 0xdf)) return in(1, 0x80, 0xbf) ? 2 : 0;
  if (in(0, 0xe0, 0xef)) {
    const bool second = in(1, byte(0) == 0xe0 ? 0xa0 : 0x80, byte(0) == 0xed ? 0x9f : 0xbf);
    return second && in(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (in(0, 0xf0, 0xf4)) {
    const bool second = in(1, byte(0) == 0xf0 ? 0x90 : 0x80, byte(0) == 0xf4 ? 0x8f : 0xbf);
    return second && in(2, 0x80, 0xbf) && in(3, 0x80, 0xbf) ? 4 : 0;
  }
  return 0;
}

std::optional<BadByte> first_bad_byte(std::string_view text) {
  BadByte at;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = letter_length(text.substr(i));
    const char c = text[i];
    const bool control =
        (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
    if (length == 0 || control) {
      at.reason = length == 0 ? "not UTF-8 text" : "a control character";
      return at;
    }
    i += length;
    at.column = c == '\n' ? 1 : at.column + 1;
    at.line += c == '\n';
  }
  return std::nullopt;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = letter_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace wd::config
