// number.h: writes numbers as JSON text.
#pragma once

#include <string>

namespace wd {

// Returns the shortest text that reads back as the same double; whole numbers without an exponent; "null" if
// the value is not finite.
std::string json_number(double value);

}  // namespace wd
