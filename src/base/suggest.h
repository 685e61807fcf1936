// suggest.h: the name that was probably meant, for 'did you mean'.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wd {

// Insertions, deletions, replacements and swaps of neighbours that turn a into b; case does not count.
int edit_distance(std::string_view a, std::string_view b);

// The name nearest to a word, the first of equals; empty where none is near enough to be a slip of the
// fingers.
std::string nearest_name(std::string_view word, const std::vector<std::string>& names);

// `; did you mean "NAME"?`, or `; known: a, b, c` where no name is near.
std::string suggestion(std::string_view word, const std::vector<std::string>& names);

}  // namespace wd
