// numbers.cpp: one grammar for numbers, parsed with from_chars. yaml-cpp's own parser reads 010 as 8, rejects
// 1e6 and accepts nan.
#include "src/config/numbers.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace wd::config {
namespace {

constexpr std::size_t kMaxText = 64;  // no number needs more characters
constexpr std::int64_t kMaxExponent = 9999;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A parsed number: its digits without decimal point and underscores, and the power of ten of the last digit.
struct Decimal {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;
};

// Moves digits from the start of `text` to `out`. Underscores are allowed only between digits. Returns false
// if there is a misplaced underscore.
bool take_digits(std::string_view& text, std::string& out) {
  const std::size_t before = out.size();
  while (!text.empty() && (is_digit(text[0]) || text[0] == '_')) {
    if (text[0] == '_') {
      if (out.size() == before || text.size() < 2 || !is_digit(text[1])) return false;
    } else {
      out += text[0];
    }
    text.remove_prefix(1);
  }
  return true;
}

// Returns the power of ten of "e6", "k", "M", "G" or nothing. Returns none if there is any other text.
std::optional<std::int64_t> take_exponent(std::string_view text) {
  if (text.empty()) return 0;
  if (text == "k" || text == "K") return 3;
  if (text == "M") return 6;
  if (text == "G") return 9;
  if (text[0] != 'e' && text[0] != 'E') return std::nullopt;
  text.remove_prefix(1);
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (text.empty() || text.size() > kMaxText) return std::nullopt;
  std::int64_t exponent = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    exponent = std::min(exponent * 10 + (c - '0'), kMaxExponent);
  }
  return negative ? -exponent : exponent;
}

bool is_not_finite(std::string_view text) {
  std::string word;
  for (const char c : text) word += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  if (!word.empty() && (word[0] == '+' || word[0] == '-')) word.erase(0, 1);
  if (!word.empty() && word[0] == '.') word.erase(0, 1);
  return word == "nan" || word == "inf" || word == "infinity";
}

Parsed take_apart(std::string_view text, Decimal& out) {
  if (is_not_finite(text)) return Parsed::kNotFinite;
  if (text.empty() || text.size() > kMaxText) return Parsed::kNoNumber;
  if (text[0] == '-' || text[0] == '+') {
    out.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (!take_digits(text, out.digits)) return Parsed::kNoNumber;
  const std::size_t whole = out.digits.size();
  const bool leading_zero = whole > 1 && out.digits[0] == '0';
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    if (!take_digits(text, out.digits)) return Parsed::kNoNumber;
  }
  if (out.digits.empty()) return Parsed::kNoNumber;
  const auto exponent = take_exponent(text);
  if (!exponent) return Parsed::kNoNumber;
  if (leading_zero) return Parsed::kLeadingZero;
  out.exponent = *exponent - static_cast<std::int64_t>(out.digits.size() - whole);
  return Parsed::kGood;
}

template <typename Real>
Parsed parse_real(std::string_view text, Real& value) {
  Decimal decimal;
  const Parsed parsed = take_apart(text, decimal);
  if (parsed != Parsed::kGood) return parsed;
  const std::string plain =
      (decimal.negative ? "-" : "") + decimal.digits + "e" + std::to_string(decimal.exponent);
  Real read = 0;
  const auto result = std::from_chars(plain.data(), plain.data() + plain.size(), read);
  const bool tiny = decimal.exponent + static_cast<std::int64_t>(decimal.digits.size()) < 0;
  if (result.ec != std::errc{} && !tiny) return Parsed::kTooLarge;
  value = read;
  return Parsed::kGood;
}

template <typename Real>
std::string format_real(Real value) {
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string text(buffer, result.ptr);
  const std::size_t e = text.find('e');
  if (e != std::string::npos && text.find('.') == std::string::npos) text.insert(e, ".0");
  return text;
}

}  // namespace

Parsed parse_double(std::string_view text, double& value) { return parse_real(text, value); }
Parsed parse_float(std::string_view text, float& value) { return parse_real(text, value); }

Parsed parse_int(std::string_view text, std::int64_t& value) {
  Decimal decimal;
  const Parsed parsed = take_apart(text, decimal);
  if (parsed != Parsed::kGood) return parsed;
  std::string& digits = decimal.digits;
  digits.erase(0, digits.find_first_not_of('0'));
  if (digits.empty()) {
    value = 0;
    return Parsed::kGood;
  }
  for (; decimal.exponent < 0 && digits.back() == '0'; ++decimal.exponent) digits.pop_back();
  if (decimal.exponent < 0) return Parsed::kNotWhole;
  if (decimal.exponent > 19) return Parsed::kTooLarge;
  digits.append(static_cast<std::size_t>(decimal.exponent), '0');
  if (decimal.negative) digits.insert(0, "-");
  std::int64_t read = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), read).ec != std::errc{})
    return Parsed::kTooLarge;
  value = read;
  return Parsed::kGood;
}

std::string demand(Parsed parsed, bool whole, const Range& range) {
  const std::string allowed = format(range);
  const bool interval = !allowed.empty() && (allowed[0] == '[' || allowed[0] == '(');
  const std::string in = interval ? "in " + allowed : allowed;
  if (parsed == Parsed::kTooLarge && in.empty()) return "too large";
  if (parsed == Parsed::kTooLarge || parsed == Parsed::kGood) return "must be " + in;
  const bool no_whole = parsed == Parsed::kNotWhole || whole;
  const std::string reason = parsed == Parsed::kNotFinite     ? "must be finite"
                             : parsed == Parsed::kLeadingZero ? "must not begin with 0"
                             : no_whole                       ? "must be a whole number"
                                                              : "must be a number";
  return in.empty() ? reason : reason + ", " + in;
}

std::string format(double value) { return format_real(value); }
std::string format(float value) { return format_real(value); }

std::string format_bound(double value) {
  std::string text = format_real(value);
  if (text.find_first_of(".e") != std::string::npos) {
    const std::size_t e = text.find('e');  // 1.0e+09 is the form for files, 1e9 the form for people
    if (e == std::string::npos) return text;
    const int exponent = std::stoi(text.substr(e + 1));
    std::string head = text.substr(0, e);
    if (head.ends_with(".0")) head.resize(head.size() - 2);
    return head + "e" + std::to_string(exponent);
  }
  const std::size_t last = text.find_last_not_of('0');
  const std::size_t zeros = last == std::string::npos ? 0 : text.size() - 1 - last;
  if (zeros < 4) return text;
  return text.substr(0, last + 1) + "e" + std::to_string(zeros);
}

std::string format(const Range& range) {
  const bool low = std::isfinite(range.low), high = std::isfinite(range.high);
  if (low && high) {
    return (range.low_open ? "(" : "[") + format_bound(range.low) + ", " + format_bound(range.high) + "]";
  }
  if (low) return (range.low_open ? "> " : ">= ") + format_bound(range.low);
  if (high) return "<= " + format_bound(range.high);
  return "";
}

}  // namespace wd::config
