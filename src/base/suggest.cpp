// suggest.cpp: finds the nearest name by edit distance.
#include "src/base/suggest.h"

#include <algorithm>
#include <cctype>

#include "src/base/join.h"
#include "wd/error.h"

namespace wd {
namespace {

constexpr std::size_t kMaxWord = 100;  // longer words are not typing errors; the run time is quadratic

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<int> two_up(width), up(width), row(width);
  for (std::size_t j = 0; j < width; ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    two_up.swap(up);
    up.swap(row);
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j < width; ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({up[j] + 1, row[j - 1] + 1, up[j - 1] + (same ? 0 : 1)});
      const bool swapped =
          i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], two_up[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string nearest_name(std::string_view word, const std::vector<std::string>& names) {
  if (word.empty() || word.size() > kMaxWord) return {};
  std::string nearest;
  int best = std::max<int>(1, static_cast<int>(word.size()) / 3) + 1;  // a third of the letters may be wrong
  for (const std::string& name : names) {
    const int distance = edit_distance(word, name);
    if (distance < best) {
      best = distance;
      nearest = name;
    }
  }
  // The only name that begins with the word.
  constexpr std::size_t kBeginning = 4;
  const auto longer = [&](const std::string& name) { return name.starts_with(word); };
  if (nearest.empty() && word.size() >= kBeginning && std::ranges::count_if(names, longer) == 1)
    nearest = *std::ranges::find_if(names, longer);
  return nearest;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const std::string nearest = nearest_name(word, names);
  return nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?";
}

std::string suggestion(std::string_view word, const std::vector<std::string>& names) {
  std::string nearest = did_you_mean(word, names);
  if (!nearest.empty() || names.empty()) return nearest;
  return "; known: " + join(names);
}

std::string gymnasium_hint(std::string_view name) {
  const std::size_t end = name.find_last_not_of("0123456789");
  const bool numbered = end != std::string_view::npos && end > 0 && end + 1 < name.size() &&
                        name.substr(end - 1, 2) == "-v" && name.find(':') == std::string_view::npos;
  return numbered ? concat("; Gymnasium's is gym:", name) : "";
}

}  // namespace wd
