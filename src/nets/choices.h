// choices.h: which algorithm of each matrix product a GPU uses. Other algorithms add in another order, so all
// trainers of a process use the same ones, and a run that resumes uses those of its checkpoint.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "src/nets/ways.h"

namespace wd::choices {

// Returns the ways that were found before for this key, in this process or by restore(), and else those of
// `measure`, which are kept. `key` has no line end, and names library and GPU too, because ways are numbered by
// what they offer. `count`: there are ways 0 ... count - 1; kept ways with other numbers are measured again.
Ways of(const std::string& key, std::size_t count, const std::function<Ways()>& measure);

// Whether ways are measured (trainer.time_algorithms). Otherwise the one that the library expects to be the best
// is used, in every process.
void set_timing(bool on);
bool timing();

// Everything that is kept, as text, and back. restore() throws std::runtime_error if the text is not such a one.
std::string save();
void restore(std::string_view text);
// For tests: a new process.
void forget();

}  // namespace wd::choices
