// algorithm_settings.cpp: the registered algorithms by name.
#include "wd/algorithm_settings.h"

#include <map>

#include "src/base/suggest.h"
#include "wd/error.h"

namespace wd {

namespace {

std::map<std::string, std::unique_ptr<AlgorithmSettings>>& registered_algorithms() {
  static std::map<std::string, std::unique_ptr<AlgorithmSettings>> all;
  return all;
}

}  // namespace

void register_algorithm(std::unique_ptr<AlgorithmSettings> defaults) {
  const std::string name = defaults->name();
  for (const OwnMetric& metric : defaults->metrics()) declare_metric(metric.name, metric.help, metric.reduce);
  if (!registered_algorithms().emplace(name, std::move(defaults)).second)
    throw UsageError("there are two algorithms called " + name + ": give one another name");
}

std::vector<std::string> algorithm_names() {
  std::vector<std::string> names;
  for (const auto& [name, settings] : registered_algorithms()) names.push_back(name);
  return names;
}

AlgorithmChoice AlgorithmChoice::named(const std::string& name) {
  const auto found = registered_algorithms().find(name);
  if (found != registered_algorithms().end()) return *found->second;
  throw UsageError("there is no algorithm " + name + suggestion(name, algorithm_names()));
}

}  // namespace wd
