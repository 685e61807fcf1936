// xml.h: text from elsewhere, made harmless for an XML document.
#pragma once

#include <string>
#include <string_view>

namespace wd::plot {

// &, <, > and double quotes as entities; what XML has no letter for, control characters included, as ?.
std::string xml_text(std::string_view text);

}  // namespace wd::plot
