// metrics_test.cpp: docs/metrics.md contains the current table of metrics. Run this test with
// WD_UPDATE_DOCS=1 to update the table.
#include "wd/metrics.h"

#include "tests/docs/generated.h"

namespace wd::test {
namespace {

std::string word_of(Reduce reduce) {
  switch (reduce) {
    case Reduce::kSum:
      return "sum";
    case Reduce::kMean:
      return "mean";
    case Reduce::kMin:
      return "least";
    case Reduce::kMax:
      return "greatest";
  }
  return "";
}

std::string table() {
  std::string text = "\n| metric | over ranks | meaning |\n|---|---|---|\n";
  for (const Metric& metric : metrics()) {
    const std::string group(metric.group), name(metric.name);
    text += "| `" + (group.empty() ? name : group + '/' + name) + "` | " + word_of(metric.reduce) + " | " +
            cell(metric.help) + " |\n";
  }
  return text + "\n";
}

TEST(Metrics, TheDocumentedOnesAreThoseOfTheCode) { expect_generated("docs/metrics.md", table()); }

}  // namespace
}  // namespace wd::test
