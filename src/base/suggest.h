// suggest.h: suggests the name that was probably meant, for "did you mean".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wd {

// Number of insertions, deletions, replacements and swaps of adjacent characters that turn a into b, ignoring
// case.
int edit_distance(std::string_view a, std::string_view b);

// Returns the name nearest to the word, and the first one if several are equally near. Empty if no name is
// near enough to be a typing error.
std::string nearest_name(std::string_view word, const std::vector<std::string>& names);

// Returns `; did you mean "NAME"?`, or nothing if no name is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

// Returns `; did you mean "NAME"?`, or `; known: a, b, c` if no name is near.
std::string suggestion(std::string_view word, const std::vector<std::string>& names);

// Of a name like CartPole-v1, `; Gymnasium's is gym:CartPole-v1`; of others nothing.
std::string gymnasium_hint(std::string_view name);

}  // namespace wd
