// utf8.h: finds the first byte of a text that is not printable UTF-8.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wd::config {

// Length of the UTF-8 character at the start of the text, or 0 if there is none. Overlong forms, surrogates
// and code points that do not exist count as none.
std::size_t letter_length(std::string_view text);

struct BadByte {
  int line = 1;
  int column = 1;
  std::string reason;
};

// Returns the first byte that is not UTF-8 or is a control character other than tab and line end. Returns
// none if the text is valid.
std::optional<BadByte> first_bad_byte(std::string_view text);

// Returns whether the text is valid UTF-8. Control characters are allowed.
bool is_utf8(std::string_view text);

}  // namespace wd::config
