// numbers_test.cpp: the grammar of numbers, exact values, and texts that are parsed to the same bits.
#include "src/config/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "src/config/duration.h"

namespace wd::config {
namespace {

std::int64_t whole(const std::string& text) {
  std::int64_t value = -12345;
  EXPECT_EQ(parse_int(text, value), Parsed::kGood) << text;
  return value;
}

TEST(Numbers, WholeNumbersInEveryForm) {
  EXPECT_EQ(whole("0"), 0);
  EXPECT_EQ(whole("-7"), -7);
  EXPECT_EQ(whole("+7"), 7);
  EXPECT_EQ(whole("1e6"), 1'000'000);
  EXPECT_EQ(whole("1E+6"), 1'000'000);
  EXPECT_EQ(whole("1.5e3"), 1500);
  EXPECT_EQ(whole("100_000"), 100'000);
  EXPECT_EQ(whole("10k"), 10'000);
  EXPECT_EQ(whole("2M"), 2'000'000);
  EXPECT_EQ(whole("1.5M"), 1'500'000);
  EXPECT_EQ(whole("3G"), 3'000'000'000);
  EXPECT_EQ(whole("200e-2"), 2);
  EXPECT_EQ(whole("5.0"), 5);
  EXPECT_EQ(whole("9223372036854775807"), INT64_MAX);  // not rounded through a double
  EXPECT_EQ(whole("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(whole("0e9999999"), 0);
}

TEST(Numbers, WhatIsNoWholeNumber) {
  const std::pair<const char*, Parsed> cases[] = {
      {"", Parsed::kNoNumber},
      {" ", Parsed::kNoNumber},
      {"-", Parsed::kNoNumber},
      {".", Parsed::kNoNumber},
      {"e5", Parsed::kNoNumber},
      {"1e", Parsed::kNoNumber},
      {"1e+", Parsed::kNoNumber},
      {"0x10", Parsed::kNoNumber},
      {"1_", Parsed::kNoNumber},
      {"_1", Parsed::kNoNumber},
      {"1__0", Parsed::kNoNumber},
      {"1 0", Parsed::kNoNumber},
      {"1,000", Parsed::kNoNumber},
      {"10kk", Parsed::kNoNumber},
      {"1e3k", Parsed::kNoNumber},
      {"ten", Parsed::kNoNumber},
      {"true", Parsed::kNoNumber},
      {"--1", Parsed::kNoNumber},
      {"2.5", Parsed::kNotWhole},
      {"1e-3", Parsed::kNotWhole},
      {"1.2345k", Parsed::kNotWhole},
      {"010", Parsed::kLeadingZero},
      {"00", Parsed::kLeadingZero},
      {"-01", Parsed::kLeadingZero},
      {"0o10", Parsed::kNoNumber},
      {".nan", Parsed::kNotFinite},
      {"NaN", Parsed::kNotFinite},
      {"-.inf", Parsed::kNotFinite},
      {"inf", Parsed::kNotFinite},
      {"9223372036854775808", Parsed::kTooLarge},
      {"1e309", Parsed::kTooLarge},
      {"1e99999999999", Parsed::kTooLarge},
      {"99999999999999999999G", Parsed::kTooLarge},
  };
  for (const auto& [text, expected] : cases) {
    std::int64_t value = 42;
    EXPECT_EQ(parse_int(text, value), expected) << text;
    EXPECT_EQ(value, 42) << text;
  }
}

TEST(Numbers, RealNumbers) {
  double value = 0.0;
  const std::pair<const char*, double> cases[] = {{"0.1", 0.1},       {".5", 0.5},     {"5.", 5.0},
                                                  {"-3e-4", -3e-4},   {"1e-400", 0.0}, {"1k", 1000},
                                                  {"1_0.2_5", 10.25}, {"2.5M", 2.5e6}};
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(parse_double(text, value), Parsed::kGood) << text;
    EXPECT_EQ(value, expected) << text;
  }
  EXPECT_EQ(parse_double("1e309", value), Parsed::kTooLarge);
  EXPECT_EQ(parse_double("-1e309", value), Parsed::kTooLarge);
  EXPECT_EQ(parse_double("01.5", value), Parsed::kLeadingZero);
  EXPECT_EQ(parse_double("nan", value), Parsed::kNotFinite);
  float small = 0.0f;
  EXPECT_EQ(parse_float("1e39", small), Parsed::kTooLarge);
}

TEST(Numbers, PrintedNumbersReadBackToTheSameBits) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    double value = 0.0, again = 0.0;
    float narrow = 0.0f, narrow_again = 0.0f;
    const std::uint64_t bits = random();
    std::memcpy(&value, &bits, sizeof value);
    std::memcpy(&narrow, &bits, sizeof narrow);
    if (!std::isfinite(value) || !std::isfinite(narrow)) continue;
    ASSERT_EQ(parse_double(format(value), again), Parsed::kGood) << format(value);
    ASSERT_EQ(std::memcmp(&value, &again, sizeof value), 0) << format(value);
    ASSERT_EQ(parse_float(format(narrow), narrow_again), Parsed::kGood) << format(narrow);
    ASSERT_EQ(std::memcmp(&narrow, &narrow_again, sizeof narrow), 0) << format(narrow);
  }
  EXPECT_EQ(format(0.1f), "0.1");
  EXPECT_EQ(format(1e-8), "1.0e-08");  // YAML 1.1 parsers read 1e-08 as text
}

TEST(Numbers, Ranges) {
  EXPECT_EQ(format(Range{1, 1024}), "[1, 1024]");
  EXPECT_EQ(format(above(0, 1e4)), "(0, 1e4]");
  EXPECT_EQ(format(above(0)), "> 0");
  EXPECT_EQ(format(Range{1}), ">= 1");
  EXPECT_EQ(format(Range{-1e6, 0}), "[-1e6, 0]");
  EXPECT_EQ(format(Range{}), "");
  EXPECT_EQ(format(Range{0, 16'777'216}), "[0, 16777216]");
  EXPECT_EQ(format(Range{-1e30, 0.5}), "[-1e30, 0.5]");
}

TEST(Durations, HaveUnits) {
  const std::pair<const char*, double> good[] = {
      {"90", 90},        {"90s", 90},        {"10m", 600},  {"1.5h", 5400},  {"1h", 3600},   {"2d", 172800},
      {"1e3", 1000},     {"1k", 1000},       {"0", 0},      {"0s", 0},       {"1ks", 1000},  {"1M", 1e6},
      {"-1m", -60},      {".5h", 1800},      {"1_0m", 600}, {"1h30m", 5400}, {"2m30s", 150}, {"10min", 600},
      {"1d12h", 129600}, {"01:30:00", 5400}, {"0:0:5", 5}};
  for (const auto& [text, expected] : good) {
    double seconds = -1.0;
    EXPECT_EQ(parse_duration(text, seconds), Parsed::kGood) << text;
    EXPECT_EQ(seconds, expected) << text;
  }
  for (const char* text : {"", "s", "h", "1w", "1 h", "1hh", "1h30", "1H", "one", "1mi", "0x1s", "1:30",
                           "01:30:", "1::1", "1:2:3:4", "1h-5m"}) {
    double seconds = -1.0;
    EXPECT_EQ(parse_duration(text, seconds), Parsed::kNoNumber) << text;
    EXPECT_EQ(seconds, -1.0) << text;
  }
  double seconds = -1.0;
  EXPECT_EQ(parse_duration("nan", seconds), Parsed::kNotFinite);
  EXPECT_EQ(parse_duration("1e308d", seconds), Parsed::kTooLarge);
  EXPECT_EQ(parse_duration("010s", seconds), Parsed::kLeadingZero);
  EXPECT_EQ(seconds, -1.0);
}

}  // namespace
}  // namespace wd::config
