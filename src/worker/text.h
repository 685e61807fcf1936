// text.h: text in memory of fixed size, as a signal handler needs it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace wd::launcher {

// Appends what fits. The destructor writes the terminating 0.
class Text {
 public:
  Text(char* begin, std::size_t size) : at_(begin), last_(begin + size - 1) {}
  ~Text() { *at_ = '\0'; }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  void add(std::string_view text) {
    for (const char c : text) {
      if (at_ != last_) *at_++ = c;
    }
  }
  void add_hex(std::uintptr_t value) {
    add("0x");
    add_number(value, 16, 1);
  }
  // Writes at least `digits` digits.
  void add_number(std::uint64_t value, unsigned base = 10, int digits = 1) {
    std::array<char, 64> text{};
    std::size_t first = text.size();
    for (; value != 0 || digits > 0; --digits, value /= base)
      text[--first] = "0123456789abcdef"[value % base];
    add({text.data() + first, text.size() - first});
  }
  // Adds quotes and escapes, as in JSON; control characters become '?'.
  void add_quoted(std::string_view text) {
    add("\"");
    for (const char c : text) {
      if (c == '"' || c == '\\') add("\\");
      add(static_cast<unsigned char>(c) < ' ' ? std::string_view("?") : std::string_view(&c, 1));
    }
    add("\"");
  }

 private:
  char* at_;
  char* last_;
};

}  // namespace wd::launcher
