// printable.cpp: finds control characters among UTF-8 characters and other bytes.
#include "src/base/printable.h"

#include <algorithm>

#include "src/base/utf8.h"

namespace wd {
namespace {

bool is_8_bit_control(unsigned char byte) { return byte >= 0x80 && byte < 0xa0; }

}  // namespace

std::string without_controls(std::string_view message) {
  std::string text;
  text.reserve(message.size());
  while (!message.empty()) {
    const std::size_t length = std::max<std::size_t>(config::letter_length(message), 1);
    const auto first = static_cast<unsigned char>(message[0]);
    const bool control =
        length == 1
            ? (first < ' ' && first != '\n' && first != '\t') || first == 0x7f || is_8_bit_control(first)
            : first == 0xc2 && is_8_bit_control(static_cast<unsigned char>(message[1]));
    text += control ? "?" : message.substr(0, length);
    message.remove_prefix(length);
  }
  return text;
}

std::string on_one_line(std::string_view text) {
  std::string line = without_controls(text);
  std::ranges::replace_if(line, [](char c) { return c == '\n' || c == '\t'; }, '?');
  return line;
}

}  // namespace wd
