// problems.cpp: words and collects problems.
#include "src/config/problems.h"

#include <algorithm>

#include "src/base/join.h"
#include "src/base/utf8.h"
#include "wd/config.h"

namespace wd {

ConfigError::ConfigError(std::vector<std::string> problems)
    : UsageError(join(problems, "\n")), problems_(std::move(problems)) {}

namespace config {

std::string Place::full() const { return line == 0 ? source : brief() + ":" + std::to_string(column); }

std::string Place::brief() const { return line == 0 ? source : source + ":" + std::to_string(line); }

std::string printable(std::string_view text, std::size_t limit) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text[0]);
    const std::size_t length = letter_length(text);
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      out += std::string("\\x") + kHex[byte >> 4] + kHex[byte & 15];
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
    if (out.size() > limit) {
      out.resize(limit);
      // Do not cut a character in half.
      while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0x80) != 0) out.pop_back();
      return out + "...";
    }
  }
  return out;
}

void Problems::add(const Place& place, std::string_view what, std::string_view reason) {
  std::string line = place.full();
  if (!what.empty()) line += (line.empty() ? "" : ": ") + std::string(what);
  line += (line.empty() ? "" : ": ") + std::string(reason);
  add(std::move(line));
}

void Problems::add(std::string line) {
  ++count_;
  if (lines_.size() < kMax) lines_.push_back(std::move(line));
}

std::vector<std::string> Problems::lines() const {
  std::vector<std::string> all = lines_;
  if (count_ > lines_.size()) all.push_back("... and " + std::to_string(count_ - lines_.size()) + " more");
  return all;
}

void Problems::throw_if_any() const {
  if (!empty()) throw ConfigError(lines());
}

}  // namespace config
}  // namespace wd
