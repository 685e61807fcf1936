// numbers.h: numbers as people write them, and as they are printed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "wd/params.h"

namespace wd::config {

enum class Parsed { kGood, kNoNumber, kNotWhole, kTooLarge, kNotFinite, kLeadingZero };

// Digits, with _ between them, a fraction, an exponent (1e6) or one of k, M, G (1e3, 1e6, 1e9; not after an
// exponent). What is too small to be told from 0 is 0. Refused: a leading zero (010 is 8 to some and 10 to
// others), hexadecimal, nan, inf.
Parsed parse_double(std::string_view text, double& value);
Parsed parse_float(std::string_view text, float& value);
// The same forms; the value must be whole (1e6, 1.5M) and is found without rounding.
Parsed parse_int(std::string_view text, std::int64_t& value);

// What to write instead of a text that is no number, or of a number out of range: "must be in (0, 1e4]",
// "must be a whole number, in [1, 1024]".
std::string demand(Parsed parsed, bool whole, const Range& range);

// The shortest text that reads back to the same bits, also in YAML 1.1 readers (1.0e-04).
std::string format(double value);
std::string format(float value);

// "(0, 1e4]", "> 0", ">= 1", "<= 0"; empty where every number is allowed.
std::string format(const Range& range);

// A bound: round powers of ten as 1e4.
std::string format_bound(double value);

}  // namespace wd::config
