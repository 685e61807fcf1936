// ways.cpp: sorts ways by their measured times.
#include "src/nets/ways.h"

#include <algorithm>

namespace wd {

Ways::Ways(std::size_t count, const std::function<std::optional<double>(std::size_t)>& seconds) {
  for (std::size_t k = 0; k < count; ++k)
    if (const std::optional<double> measured = seconds(k)) left_.push_back({k, *measured});
  if (left_.empty()) return;
  const std::size_t favorite = left_.front().number;
  std::ranges::stable_sort(left_, {}, [&](const Way& way) {
    return way.number == favorite ? kClearlyFaster * way.seconds : way.seconds;
  });
}

Ways::Ways(const std::vector<std::size_t>& order) {
  for (const std::size_t number : order) left_.push_back({number, 0.0});
}

std::vector<std::size_t> Ways::order() const {
  std::vector<std::size_t> numbers;
  for (const Way& way : left_) numbers.push_back(way.number);
  return numbers;
}

std::optional<double> Ways::seconds() const {
  return left_.empty() ? std::nullopt : std::optional(left_.front().seconds);
}

bool Ways::run(const std::function<bool(std::size_t)>& attempt) {
  while (!left_.empty() && !attempt(left_.front().number)) left_.erase(left_.begin());
  return !left_.empty();
}

}  // namespace wd
