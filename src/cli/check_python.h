// check_python.h: what `wdtrain check` does with environments in Python: it checks them, and compares ours
// with them.
#pragma once

#include <string>

#include "src/replicas/check/checks.h"

namespace wd::cli {

// A line of the output. `verdict`: ok, FAILED, warning or skipped.
std::string check_line(const char* verdict, const CheckResult& result);
// Prints the line of a check that was made. Returns whether it passed.
bool show(const CheckResult& result);

// Prints the results of python/wdtrain/checks.py. Returns false if a check failed.
bool check_python(const Environment& environment, const CheckOptions& options);

struct AgainstOptions {
  std::string original;  // gym:ID, pettingzoo:MODULE or MODULE:FUNCTION
  std::string kwargs;    // JSON
  std::string state;     // MODULE:FUNCTION; empty: by names
  double rtol = 1e-4, atol = 1e-4;
  bool drift = false;  // ours gets the original's state only where episodes begin
};

// Steps an environment and its original with the same actions, and prints where they differ. Returns false if
// they do. Throws UsageError if the original cannot be made, or its state is not known.
bool check_against(const Environment& environment, const AgainstOptions& against,
                   const CheckOptions& options);

}  // namespace wd::cli
