// numbers.h: parses numbers written by people, and formats numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "wd/params.h"

namespace wd::config {

enum class Parsed { kGood, kNoNumber, kNotWhole, kTooLarge, kNotFinite, kLeadingZero };

// Accepts digits, with _ between them, a fraction, and an exponent (1e6) or one of k, M, G (1e3, 1e6, 1e9;
// not after an exponent). Values too small to represent become 0. Rejects a leading zero (010 is 8 to some
// readers and 10 to others), hexadecimal, nan and inf.
Parsed parse_double(std::string_view text, double& value);
Parsed parse_float(std::string_view text, float& value);
// Accepts the same forms. The value must be whole (1e6, 1.5M) and is computed without rounding.
Parsed parse_int(std::string_view text, std::int64_t& value);

// Returns what is required instead of text that is not a number, or of a number out of range: "must be in (0,
// 1e4]", "must be a whole number, in [1, 1024]".
std::string demand(Parsed parsed, bool whole, const Range& range);

// Returns the shortest text that is read back as the same bits, also by YAML 1.1 readers (1.0e-04).
std::string format(double value);
std::string format(float value);

// Examples: "(0, 1e4]", "> 0", ">= 1", "<= 0". Empty if every number is allowed.
std::string format(const Range& range);

// Formats a bound. Round powers of ten are written as 1e4.
std::string format_bound(double value);

}  // namespace wd::config
