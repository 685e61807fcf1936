// seal.h: proof that a text comes from somebody who knows a secret.
#pragma once

#include <string>
#include <string_view>

namespace wd {

// HMAC-SHA-256 (RFC 2104, FIPS 180-4) as 64 hexadecimal digits. Nobody makes it, or learns a random key of
// 128 bits from it, without the key.
std::string seal(std::string_view key, std::string_view text);

}  // namespace wd
