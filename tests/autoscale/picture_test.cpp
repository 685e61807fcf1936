// picture_test.cpp: the picture is XML, shows every try, and lets no text out of its place.
#include "src/autoscale/picture.h"

#include "src/autoscale/xml.h"
#include "tests/autoscale/fake_report.h"

namespace wd::scaling {
namespace {

using testing::HasSubstr;
using testing::Not;

// Whether tags nest, attributes are quoted and every & begins an entity: the first fault, or nothing.
std::string xml_fault(std::string_view text) {
  std::vector<std::string> open;
  while (!text.empty()) {
    const std::size_t tag = text.find('<');
    for (std::size_t at = 0; (at = text.substr(0, tag).find('&', at)) != std::string::npos; ++at) {
      const std::string_view entity = text.substr(at, text.find(';', at) - at);
      if (entity != "&amp" && entity != "&lt" && entity != "&gt" && entity != "&quot") return "a lone &";
    }
    if (tag == std::string::npos) break;
    const std::size_t end = text.find('>', tag);
    if (end == std::string::npos) return "an open tag";
    const std::string_view inside = text.substr(tag + 1, end - tag - 1);
    if (inside.find('<') != std::string::npos) return "a lone <";
    if (std::ranges::count(inside, '"') % 2 != 0) return "an open quote";
    const std::string name(inside.substr(0, inside.find_first_of(" /", 1)));
    if (inside.starts_with('/')) {
      if (open.empty() || '/' + open.back() != inside) return "tags cross at " + std::string(inside);
      open.pop_back();
    } else if (!inside.ends_with('/')) {
      open.push_back(name);
    }
    text.remove_prefix(end + 1);
  }
  return open.empty() ? "" : "open: " + open.back();
}

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
  report.result.tries.front().outcome.detail = "\x01 <b> & \xff";
  const std::string picture = svg(report);
  EXPECT_EQ(xml_fault(picture), "");
  EXPECT_THAT(picture, Not(HasSubstr("<script")));
  EXPECT_THAT(picture, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(picture, HasSubstr("a &lt;fake&gt; &quot;machine&quot; &amp; more"));
  EXPECT_THAT(picture, HasSubstr("? &lt;b&gt; &amp; ?"));
  EXPECT_EQ(occurrences(picture, "<title>"), report.result.tries.size());
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

TEST(PictureTest, TheCheckOfThisTestFindsFaults) {
  for (const char* const bad : {"<a>", "<a></b>", "<a>&</a>", "<a b=\"></a>", "<a <b/></a>", "<a"})
    EXPECT_NE(xml_fault(bad), "") << bad;
}

TEST(PictureTest, TextForXml) {
  EXPECT_EQ(xml_text("a<b>&\"c"), "a&lt;b&gt;&amp;&quot;c");
  EXPECT_EQ(xml_text("M\xc3\xbcller \xe2\x82\xac \xf0\x9f\x8e\xb2"),
            "M\xc3\xbcller \xe2\x82\xac \xf0\x9f\x8e\xb2");
  EXPECT_EQ(xml_text(std::string_view("\0\x1b\x7f\n", 4)), "????");
  EXPECT_EQ(xml_text("\xff\xc3"), "??");
  EXPECT_EQ(xml_text("\xef\xbf\xbf"), "?");
}

}  // namespace
}  // namespace wd::scaling
