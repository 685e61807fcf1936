// xml_fault.h: a minimal XML parser that detects broken pictures.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace wd::plot {

// Checks that tags nest, attributes are quoted and every & begins an entity. Returns the first fault, or an
// empty string.
inline std::string xml_fault(std::string_view text) {
  std::vector<std::string> open;
  while (!text.empty()) {
    const std::size_t tag = text.find('<');
    for (std::size_t at = 0; (at = text.substr(0, tag).find('&', at)) != std::string::npos; ++at) {
      const std::string_view entity = text.substr(at, text.find(';', at) - at);
      if (entity != "&amp" && entity != "&lt" && entity != "&gt" && entity != "&quot") return "a lone &";
    }
    if (tag == std::string::npos) break;
    const std::size_t end = text.find('>', tag);
    if (end == std::string::npos) return "an open tag";
    const std::string_view inside = text.substr(tag + 1, end - tag - 1);
    if (inside.find('<') != std::string::npos) return "a lone <";
    if (std::ranges::count(inside, '"') % 2 != 0) return "an open quote";
    const std::string name(inside.substr(0, inside.find_first_of(" /", 1)));
    if (inside.starts_with('/')) {
      if (open.empty() || '/' + open.back() != inside) return "tags cross at " + std::string(inside);
      open.pop_back();
    } else if (!inside.ends_with('/')) {
      open.push_back(name);
    }
    text.remove_prefix(end + 1);
  }
  return open.empty() ? "" : "open: " + open.back();
}

}  // namespace wd::plot
