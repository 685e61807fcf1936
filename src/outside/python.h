// python.h: environments that are written in Python: Gymnasium's, PettingZoo's, and those that a function of
// the user makes.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "wd/outside.h"

namespace wd {

// True for gym:ID, pettingzoo:MODULE and MODULE:FUNCTION.
bool is_python_environment(std::string_view name);

// Throws UsageError if the name is none of those.
std::unique_ptr<Environment> make_python_environment(std::string_view name);

namespace outside {

class PythonProcess;

// A process for requests beside those of replicas. `environment` is one of the above; a request has
// `more_seconds` beyond env.start_seconds. Throws UsageError.
std::unique_ptr<PythonProcess> start_process(const Environment& environment, double more_seconds);
// env.python; empty: it is not set.
std::string interpreter_of(const Environment& environment);
// Networks do not read its stream `state`: it is not asked for.
void leave_state_out(Environment& environment);
// No episode is played to find out which numbers `info` has. Call it before spec().
void leave_statistics_out(Environment& environment);
// {"do": what, "environment": its name, "kwargs": JSON text, "wrappers": [names], ...}
nlohmann::json request_of(const Environment& environment, const char* what);

}  // namespace outside

}  // namespace wd
