// number.h: numbers as JSON text.
#pragma once

#include <string>

namespace wd {

// The shortest text that reads back as the same double; whole numbers without an exponent; null where not
// finite.
std::string json_number(double value);

}  // namespace wd
