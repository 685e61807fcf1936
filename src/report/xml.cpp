// xml.cpp: escapes one character at a time.
#include "src/report/xml.h"

#include <algorithm>

#include "src/base/utf8.h"

namespace wd::plot {

std::string xml_text(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const std::size_t bytes = std::max<std::size_t>(config::letter_length(text), 1);
    const std::string_view letter = text.substr(0, bytes);
    const auto first = static_cast<unsigned char>(letter.front());
    const bool no_letter = (bytes == 1 && (first < ' ' || first >= 0x7f)) || letter == "\xef\xbf\xbe" ||
                           letter == "\xef\xbf\xbf";  // U+FFFE and U+FFFF are not XML characters
    if (no_letter) {
      safe += '?';
    } else if (letter == "&") {
      safe += "&amp;";
    } else if (letter == "<") {
      safe += "&lt;";
    } else if (letter == ">") {
      safe += "&gt;";
    } else if (letter == "\"") {
      safe += "&quot;";
    } else {
      safe += letter;
    }
    text.remove_prefix(bytes);
  }
  return safe;
}

}  // namespace wd::plot
