// packed.cpp: rounding, differences, zlib and base64.
#include "src/play/packed.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>

#include "wd/error.h"

namespace wd {

using Json = nlohmann::ordered_json;

Json Packed::add(const Series& series, bool coarse) {
  const std::vector<double>& values = series.values;
  const std::size_t moments = series.moments(), width = static_cast<std::size_t>(series.width);
  Json json = {{"at", bytes_.size()}, {"width", width}, {"moments", moments}};
  const bool finite = std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
  if (!finite) {
    json["type"] = "f32";
    for (const double value : values) {
      const auto number = static_cast<float>(value);
      unsigned char bytes[sizeof(number)];
      std::memcpy(bytes, &number, sizeof(number));
      bytes_.insert(bytes_.end(), bytes, bytes + sizeof(number));
    }
    return json;
  }
  const auto [least, most] = std::ranges::minmax_element(values);
  const double low = values.empty() ? 0.0 : *least, range = values.empty() ? 0.0 : *most - low;
  const bool whole =
      range < 65536.0 && std::ranges::all_of(values, [](double value) { return value == std::rint(value); });
  const bool small = coarse || (whole && range < 256.0);
  const double steps = small ? 255.0 : 65535.0, step = whole ? 1.0 : range / steps;
  json["type"] = small ? "u8" : "u16";
  json["min"] = low;
  json["step"] = step;
  const std::size_t begin = bytes_.size();
  bytes_.resize(begin + values.size() * (small ? 1 : 2));
  std::size_t at = begin;
  for (std::size_t i = 0; i < width; ++i) {
    std::uint32_t before = 0;
    for (std::size_t m = 0; m < moments; ++m, ++at) {
      // A step of 0 means that all numbers are the same, and not whole.
      const double above = step > 0.0 ? (values[m * width + i] - low) / step : 0.0;
      const auto number = static_cast<std::uint32_t>(std::lround(above));
      const std::uint32_t difference = number - before;
      before = number;
      bytes_[at] = static_cast<unsigned char>(difference);
      if (!small) bytes_[at + values.size()] = static_cast<unsigned char>(difference >> 8);
    }
  }
  return json;
}

Json Packed::add(const std::vector<Picture>& pictures) {
  const Picture& first = pictures.front();
  Json json = {
      {"at", bytes_.size()}, {"width", first.width}, {"height", first.height}, {"frames", pictures.size()}};
  std::vector<unsigned char> before(first.pixels.size() / 3);
  for (const Picture& picture : pictures) {
    WD_CHECK(picture.pixels.size() == first.pixels.size(), "the environment's pictures change their size");
    for (std::size_t i = 0; i < before.size(); ++i) {
      const auto level = [&](std::size_t c) {
        return (static_cast<unsigned char>(picture.pixels[3 * i + c]) * 5 + 127) / 255;
      };
      const auto color = static_cast<unsigned char>(36 * level(0) + 6 * level(1) + level(2));
      bytes_.push_back(color ^ before[i]);
      before[i] = color;
    }
  }
  return json;
}

std::string Packed::text() const { return compressed_text(bytes_); }

std::string compressed_text(std::span<const unsigned char> bytes) {
  uLongf size = compressBound(bytes.size());
  std::vector<unsigned char> compressed(size);
  WD_CHECK(compress2(compressed.data(), &size, bytes.data(), bytes.size(), Z_BEST_COMPRESSION) == Z_OK,
           "zlib cannot compress ", bytes.size(), " bytes");
  compressed.resize(size);
  return base64(compressed);
}

void fill_in(std::string& page, const std::string& mark, const std::string& text) {
  const std::size_t at = page.find(mark);
  WD_CHECK(at != std::string::npos, "the page has no ", mark);
  page.replace(at, mark.size(), text);
}

std::string base64(const std::vector<unsigned char>& bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(bytes.size() - i, 3);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = group << 8 | (k < n ? bytes[i + k] : 0u);
    for (std::size_t k = 0; k < 4; ++k) text += k <= n ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

}  // namespace wd
