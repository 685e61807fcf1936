// utf8.h: finds the first byte of a text that is not a printable letter in UTF-8.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wd::config {

// Length of the letter at the head of a text, 0 where it is none: overlong forms, surrogates and code points
// that do not exist are none.
std::size_t letter_length(std::string_view text);

struct BadByte {
  int line = 1;
  int column = 1;
  std::string reason;
};

// The first byte that is no UTF-8 or a control character other than tab and line end; none in good text.
std::optional<BadByte> first_bad_byte(std::string_view text);

// Whether it is UTF-8, control characters or not.
bool is_utf8(std::string_view text);

}  // namespace wd::config
