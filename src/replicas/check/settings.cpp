// settings.cpp: changes one setting after another and looks which others change with it.
#include <algorithm>
#include <optional>
#include <span>

#include "src/base/selective_fields.h"
#include "src/replicas/check/checks.h"
#include "src/report/format.h"
#include "wd/error.h"

namespace wd {
namespace {

// Reads all settings as numbers. If one is chosen, it gets another value, or the one that it had.
class Values : public SelectiveFields {
 public:
  std::vector<std::string> names;
  std::vector<double> values;
  int chosen = -1;            // the index of the setting that is written
  std::optional<double> set;  // what it gets; without a value: any that it does not have

  void operator()(const char* name, bool& value, const char*) override {
    visit(name, value, value ? 0.0 : 1.0);
  }
  void operator()(const char* name, int& value, Range, const char*) override {
    visit(name, value, value == 0 ? 1.0 : 0.0);
  }
  void operator()(const char* name, std::int64_t& value, Range, const char*) override {
    visit(name, value, value == 0 ? 1.0 : 0.0);
  }
  void operator()(const char* name, float& value, Range, const char*) override {
    visit(name, value, value == 0.0f ? 1.0 : 0.0);
  }
  void operator()(const char* name, double& value, Range, const char*) override {
    visit(name, value, value == 0.0 ? 1.0 : 0.0);
  }
  void choice(const char* name, int& value, std::span<const char* const> words, const char*) override {
    const auto n = static_cast<int>(words.size());
    visit(name, value, n < 2 ? value : (value + 1) % n);
  }

 private:
  template <typename T>
  void visit(const char* name, T& value, double another) {
    if (static_cast<int>(values.size()) == chosen) value = static_cast<T>(set.value_or(another));
    names.emplace_back(name);
    values.push_back(static_cast<double>(value));
  }
};

Values read(Environment& environment) {
  Values values;
  environment.describe(values);
  return values;
}

void write(Environment& environment, int index, std::optional<double> value) {
  Values values;
  values.chosen = index;
  values.set = value;
  environment.describe(values);
}

}  // namespace

CheckResult check_settings(Environment& environment) {
  const Values before = read(environment);
  CheckResult result{"settings have their own variables",
                     report::counted(std::ssize(before.names), "setting")};
  for (std::size_t k = 0; k < before.names.size(); ++k) {
    const auto index = static_cast<int>(k);
    write(environment, index, {});
    const Values changed = read(environment);
    write(environment, index, before.values[k]);
    // describe() may name other settings when one has another value.
    const std::size_t n = std::min(before.names.size(), changed.names.size());
    for (std::size_t other = 0; other < n && result.passed; ++other) {
      if (other == k || changed.values[other] == before.values[other] || before.names != changed.names)
        continue;
      result.passed = false;
      result.detail =
          concat("settings '", before.names[std::min(k, other)], "' and '", before.names[std::max(k, other)],
                 "' change the same variable: Params::describe() names it in two fields; give each field a "
                 "variable of its own");
    }
  }
  return result;
}

}  // namespace wd
