// picture_test.cpp: the picture is well-formed XML, shows every try, and escapes all text.
#include "tests/autoscale/fake_report.h"
#include "tests/plot/xml_fault.h"

namespace wd::scaling {
namespace {

using plot::xml_fault;
using testing::HasSubstr;
using testing::Not;

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

TEST(PictureTest, IsXmlWithEveryTryAndNothingThatRuns) {
  FakeMachine machine;
  machine.rate = [](const Probe& p) { return static_cast<double>(p.num_envs); };
  machine.trouble = [](const Probe& p, int) {
    return p.num_envs > 8000 ? std::optional(Kind::kTooSlow) : std::nullopt;
  };
  Report report = report_of(machine, 1 << 28);
  report.env = "</text><script>alert(1)</script>";
  report.result.trials.front().outcome.detail = "\x01 <b> & \xff";
  const std::string picture = svg(report);
  EXPECT_EQ(xml_fault(picture), "");
  EXPECT_THAT(picture, Not(HasSubstr("<script")));
  EXPECT_THAT(picture, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(picture, HasSubstr("a &lt;fake&gt; &quot;machine&quot; &amp; more"));
  EXPECT_THAT(picture, HasSubstr("? &lt;b&gt; &amp; ?"));
  EXPECT_EQ(occurrences(picture, "<title>"), report.result.trials.size());
  EXPECT_THAT(picture, HasSubstr("[1/s]"));
  EXPECT_THAT(picture, HasSubstr("chosen:"));
  EXPECT_THAT(picture, HasSubstr("too slow"));
}

TEST(PictureTest, SearchesThatFoundNothingAreDrawnToo) {
  Report empty;
  const Report none = report_of({.memory = 0.0});
  for (const Report& report : {empty, none}) {
    const std::string picture = svg(report);
    EXPECT_EQ(xml_fault(picture), "");
    EXPECT_THAT(picture, Not(HasSubstr("nan")));
    EXPECT_THAT(picture, Not(HasSubstr("inf")));
    EXPECT_THAT(picture, Not(HasSubstr("chosen")));
  }
}

}  // namespace
}  // namespace wd::scaling
