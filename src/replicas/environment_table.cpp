// environment_table.cpp: every environment that this program knows: the program's own, then the library's.
#include "wd/environment.h"
#include "wd/outside.h"

namespace wd::detail {

std::vector<EnvironmentRow> bundled_environments();  // generated: envs/*.cu

// Generated in a program that calls wd_add_environment(); null in all others.
[[gnu::weak]] std::vector<EnvironmentRow> program_environments();

const std::vector<EnvironmentRow>& environment_table() {
  static const std::vector<EnvironmentRow> table = [] {
    std::vector<EnvironmentRow> rows = registered_environments();
    if (program_environments)
      for (const EnvironmentRow& row : program_environments()) rows.push_back(row);
    for (const EnvironmentRow& row : bundled_environments()) rows.push_back(row);
    return rows;
  }();
  return table;
}

}  // namespace wd::detail
