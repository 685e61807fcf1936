// sweep.cpp: parses KEY=FIRST..LAST into values.
#include "src/bench/sweep.h"

#include <algorithm>
#include <array>

#include "src/config/numbers.h"
#include "wd/error.h"

namespace wd::bench {
namespace {

constexpr std::array<std::string_view, 3> kOptions = {"num_envs", "rollout_steps", "mode"};
constexpr std::size_t kMaxSettings = 1000;

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw UsageError(
      concat("--sweep ", text, ": ", why, "; write KEY=FIRST..LAST, which doubles, or KEY=A,B,C"));
}

std::vector<std::string> doublings(std::string_view text, std::string_view first, std::string_view last) {
  std::int64_t low = 0, high = 0;
  if (config::parse_int(std::string(first), low) != config::Parsed::kGood ||
      config::parse_int(std::string(last), high) != config::Parsed::kGood)
    refuse(text, "a range goes from one whole number to another");
  if (low < 1 || high < low) refuse(text, "a range goes upwards, from 1 or more");
  std::vector<std::string> values;
  for (; low < high; low *= 2) values.push_back(std::to_string(low));
  values.push_back(std::to_string(high));
  return values;
}

std::vector<std::string> list(std::string_view text, std::string_view words) {
  std::vector<std::string> values;
  for (std::size_t begin = 0; begin <= words.size();) {
    const std::size_t end = std::min(words.find(',', begin), words.size());
    if (end == begin) refuse(text, "a value is missing");
    values.emplace_back(words.substr(begin, end - begin));
    if (std::ranges::count(values, values.back()) > 1) refuse(text, values.back() + " is there twice");
    begin = end + 1;
  }
  return values;
}

bool is_option(std::string_view key) { return std::ranges::count(kOptions, key) > 0; }

}  // namespace

Sweep parse_sweep(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) refuse(text, "there is no KEY=");
  std::string key(text.substr(0, equals));
  const std::string_view values = text.substr(equals + 1), dots = "..";
  if (!is_option(key) && key.find('.') == std::string::npos) key = "env." + key;
  const std::size_t range = values.find(dots);
  return {key, range == std::string_view::npos
                   ? list(text, values)
                   : doublings(text, values.substr(0, range), values.substr(range + dots.size()))};
}

std::vector<std::vector<std::string>> combinations(const std::vector<Sweep>& sweeps) {
  std::vector<std::vector<std::string>> all = {{}};
  for (const Sweep& sweep : sweeps) {
    std::vector<std::vector<std::string>> longer;
    for (const std::vector<std::string>& before : all) {
      for (const std::string& value : sweep.values) {
        longer.push_back(before);
        longer.back().push_back(value);
      }
    }
    all = std::move(longer);
    if (all.size() > kMaxSettings) throw UsageError(concat("--sweep: more than ", kMaxSettings, " settings"));
  }
  return all;
}

}  // namespace wd::bench
