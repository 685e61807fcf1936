// packed.h: numbers as compressed text, small enough for a web page.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "src/evaluation/recorder.h"

namespace wd {

// Collects the bytes of several series. Each is stored as integers of 1 or 2 bytes: integers exactly if they
// fit, other numbers rounded to 1/65535 of their range (1/255 if `coarse`). Series with numbers that are not
// finite are float32. Integers of one agent follow each other as differences, low bytes before high ones,
// which compresses best.
class Packed {
 public:
  // {"at": first byte, "width", "moments", "type": "u8" | "u16" | "f32", "min", "step"}
  nlohmann::ordered_json add(const Series& series, bool coarse = false);

  // Frames of one size as colors of a cube of 6 x 6 x 6, 36 red + 6 green + blue, each byte exclusive-or that
  // of the frame before: {"at": first byte, "width", "height", "frames"}.
  nlohmann::ordered_json add(const std::vector<Picture>& pictures);

  // All bytes, compressed (zlib), as base64.
  std::string text() const;

 private:
  std::vector<unsigned char> bytes_;
};

// Bytes that are compressed by zlib, as base64: what DecompressionStream('deflate') reads.
std::string compressed_text(std::span<const unsigned char> bytes);
// Replaces the only occurrence of `mark` in a page.
void fill_in(std::string& page, const std::string& mark, const std::string& text);
std::string base64(const std::vector<unsigned char>& bytes);

}  // namespace wd
