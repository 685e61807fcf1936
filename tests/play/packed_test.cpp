// packed_test.cpp: series that are packed for a page, decoded here as the page does.
#include "src/play/packed.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

namespace wd {
namespace {

using Bytes = std::vector<unsigned char>;

Bytes from_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  Bytes bytes;
  unsigned bits = 0, filled = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<unsigned>(digits.find(c));
    if ((filled += 6) < 8) continue;
    filled -= 8;
    bytes.push_back(static_cast<unsigned char>(bits >> filled));
  }
  return bytes;
}

Bytes inflated(const std::string& text) {
  const Bytes compressed = from_base64(text);
  Bytes bytes(1 << 20);
  uLongf size = bytes.size();
  EXPECT_EQ(uncompress(bytes.data(), &size, compressed.data(), compressed.size()), Z_OK);
  bytes.resize(size);
  return bytes;
}

std::vector<double> decoded(const Bytes& bytes, const nlohmann::ordered_json& series) {
  const std::size_t width = series["width"], moments = series["moments"], n = width * moments;
  std::size_t at = series["at"];
  std::vector<double> values(n);
  if (series["type"] == "f32") {
    for (std::size_t i = 0; i < n; ++i, at += 4) {
      float number = 0.0f;
      std::memcpy(&number, &bytes[at], sizeof(number));
      values[i] = static_cast<double>(number);
    }
    return values;
  }
  const bool wide = series["type"] == "u16";
  for (std::size_t i = 0; i < width; ++i) {
    unsigned sum = 0;
    for (std::size_t m = 0; m < moments; ++m, ++at) {
      sum = (sum + bytes[at] + (wide ? bytes[at + n] * 256u : 0u)) % (wide ? 65536u : 256u);
      values[m * width + i] = series["min"].get<double>() + series["step"].get<double>() * sum;
    }
  }
  return values;
}

Series series_of(int width, std::vector<double> values) { return {width, std::move(values)}; }

struct Packing {
  const char* name;
  Series series;
  const char* type;
  double error;
  bool coarse = false;
};

class PackedTest : public testing::TestWithParam<Packing> {};

TEST_P(PackedTest, IsDecodedTo) {
  const Packing& p = GetParam();
  Packed packed;
  packed.add(series_of(1, {5, 6, 7}));  // others come before and after
  const auto json = packed.add(p.series, p.coarse);
  packed.add(series_of(2, {0.5, 0.25}));
  EXPECT_EQ(json["type"], p.type);
  const std::vector<double> values = decoded(inflated(packed.text()), json);
  ASSERT_EQ(values.size(), p.series.values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(p.series.values[i]))
      EXPECT_NEAR(values[i], p.series.values[i], p.error) << i;
    else
      EXPECT_EQ(std::isnan(values[i]), std::isnan(p.series.values[i])) << i;
  }
}

const double kNan = std::numeric_limits<double>::quiet_NaN();

INSTANTIATE_TEST_SUITE_P(
    All, PackedTest,
    testing::Values(
        Packing{"Flags", series_of(3, {1, 1, 0, 1, 0, 0, 0, 1, 1}), "u8", 0.0},
        Packing{"Negative", series_of(2, {-3, 4, 200, -50, 7, 7}), "u8", 0.0},
        Packing{"Counts", series_of(2, {0, 65535, 300, 1, 65535, 0}), "u16", 0.0},
        Packing{"LargeCounts", series_of(1, {0, 131070, 65535}), "u16", 1.0},
        Packing{"Floats", series_of(2, {-1.5, 3.25, 0.1, 0.2, 2.75, -0.3}), "u16", 4.75 / 65535 / 2 + 1e-12},
        Packing{"Probabilities", series_of(2, {0.0, 1.0, 0.123, 0.877}), "u8", 0.5 / 255 + 1e-12, true},
        Packing{"Constant", series_of(2, {0.7, 0.7, 0.7, 0.7}), "u16", 0.0},
        Packing{"NotFinite", series_of(1, {1.5, kNan, -2.0, kNan}), "f32", 0.0},
        Packing{"Nothing", series_of(3, {}), "u8", 0.0}),
    [](const auto& info) { return info.param.name; });

TEST(Base64, IsThatOfRfc4648) {
  const auto of = [](const std::string& text) { return base64(Bytes(text.begin(), text.end())); };
  EXPECT_EQ(of(""), "");
  EXPECT_EQ(of("f"), "Zg==");
  EXPECT_EQ(of("fo"), "Zm8=");
  EXPECT_EQ(of("foo"), "Zm9v");
  EXPECT_EQ(of("foobar"), "Zm9vYmFy");
}

}  // namespace
}  // namespace wd
