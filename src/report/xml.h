// xml.h: makes text from elsewhere safe for an XML document.
#pragma once

#include <string>
#include <string_view>

namespace wd::plot {

// Replaces &, <, > and double quotes by entities, and what is not an XML character, including control
// characters, by "?".
std::string xml_text(std::string_view text);

}  // namespace wd::plot
