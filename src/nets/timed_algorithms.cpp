// timed_algorithms.cpp: a table by key, as text one line per key: "KEY: NUMBER NUMBER".
#include "src/nets/timed_algorithms.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>

#include "src/base/whole_number.h"
#include "wd/error.h"

namespace wd::timed_algorithms {
namespace {

struct Table {
  std::recursive_mutex mutex;  // `measure` may ask for the choices that it combines
  std::map<std::string, Candidates> all;
  bool timing = true;
};

Table& table() {
  static Table table;
  return table;
}

constexpr char kSeparator = ':';

}  // namespace

Candidates of(const std::string& key, std::size_t count, const std::function<Candidates()>& measure) {
  const std::lock_guard lock(table().mutex);
  const auto found = table().all.find(key);
  if (found != table().all.end() &&
      std::ranges::all_of(found->second.order(), [&](std::size_t number) { return number < count; }))
    return found->second;
  return table().all[key] = measure();
}

void set_timing(bool on) { table().timing = on; }
bool timing() { return table().timing; }

std::string save() {
  const std::lock_guard lock(table().mutex);
  std::string text;
  for (const auto& [key, candidates] : table().all) {
    text += key;
    text += kSeparator;
    for (const std::size_t number : candidates.order()) text += concat(' ', number);
    text += '\n';
  }
  return text;
}

void restore(std::string_view text) {
  std::map<std::string, Candidates> read;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.rfind(kSeparator);
    WD_CHECK(colon != std::string::npos, "the choice of an algorithm is not 'KEY: NUMBERS': ", line);
    std::istringstream words(line.substr(colon + 1));
    std::vector<std::size_t> order;
    for (std::string word; words >> word;) {
      const std::optional<int> number = whole_number<int>(word);
      WD_CHECK(number && *number >= 0, "the choice of an algorithm is not 'KEY: NUMBERS': ", line);
      order.push_back(static_cast<std::size_t>(*number));
    }
    read.emplace(line.substr(0, colon), Candidates(order));
  }
  const std::lock_guard lock(table().mutex);
  table().all = std::move(read);
}

void forget() { restore(""); }

}  // namespace wd::timed_algorithms
