// timed_algorithms.h: which algorithm of each matrix product a GPU uses. Other algorithms add in another
// order, so all trainers of a process use the same ones, and a run that resumes uses those of its checkpoint.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "src/nets/candidates.h"

namespace wd::timed_algorithms {

// Returns the candidates that were found before for this key, in this process or by restore(), and else those
// of `measure`, which are kept. `key` has no line end, and names library and GPU too, because candidates are
// numbered by what they offer. `count`: there are candidates 0 ... count - 1; kept candidates with other
// numbers are measured again. `measure` may call of() for other keys.
Candidates of(const std::string& key, std::size_t count, const std::function<Candidates()>& measure);

// Whether candidates are measured (trainer.time_algorithms). Otherwise the one that the library expects to be
// the best is used, in every process.
void set_timing(bool on);
bool timing();

// Everything that is kept, as text, and back. restore() throws std::runtime_error if the text is not such a
// one.
std::string save();
void restore(std::string_view text);
// For tests: a new process.
void forget();

}  // namespace wd::timed_algorithms
