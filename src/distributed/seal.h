// seal.h: proof that the author of a text knows a secret.
#pragma once

#include <string>
#include <string_view>

namespace wd {

// Returns HMAC-SHA-256 (RFC 2104, FIPS 180-4) as 64 hexadecimal digits. Without the key, it cannot be
// computed, and a random key of 128 bits cannot be derived from it.
std::string seal(std::string_view key, std::string_view text);

}  // namespace wd
