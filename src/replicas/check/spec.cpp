// spec.cpp: checks the specification before anything runs on it.
#include "src/replicas/check/checks.h"
#include "src/replicas/spec_fault.h"
#include "src/report/format.h"
#include "wd/error.h"

namespace wd {

CheckResult check_spec(const Environment& environment) {
  const Spec spec = environment.spec();
  const std::string fault = spec_fault(spec, environment.layout());
  return {"the specification is consistent",
          fault.empty() ? concat(report::counted(std::ssize(spec.roles), "role"), ", ",
                                 report::counted(spec.num_agents(), "agent"))
                        : fault,
          fault.empty()};
}

}  // namespace wd
