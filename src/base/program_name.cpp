// program_name.cpp: the name, which main() sets once.
#include "src/base/program_name.h"

#include <utility>

namespace wd {
namespace {

std::string& name() {
  static std::string name = "wdtrain";
  return name;
}

}  // namespace

const std::string& program_name() { return name(); }
void set_program_name(std::string given) { name() = std::move(given); }

}  // namespace wd
