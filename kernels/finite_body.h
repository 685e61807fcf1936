// finite_body.h: the test of one number, the same code on both devices.
#pragma once

#include "kernels/finite.h"
#include "wd/math.h"

namespace wd {

// All bits of the exponent are set.
WD_FN bool is_not_finite(std::uint32_t bits) { return (bits & 0x7f800000u) == 0x7f800000u; }

}  // namespace wd
