// svg_test.cpp: pictures are valid XML, whatever text they contain.
#include "src/report/svg.h"

#include <gmock/gmock.h>

#include "src/report/xml.h"
#include "tests/plot/xml_fault.h"

namespace wd::plot {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(SvgTest, AllElementsAreXml) {
  Svg svg(100, 50);
  svg.text({1, 2}, "</text><script>", "font-size=\"15\"");
  svg.upright({1, 2}, "a & b");
  svg.line({0, 0}, {100, 50}, kGrid);
  svg.polyline({{0, 0}, {10.26, 20}}, kColours[0]);
  svg.dot({5, 5}, 4, kColours[1], "<b>");
  svg.ring({5, 5}, 8);
  svg.cross({7, 8}, "#c00", "\"quoted\"");
  const std::string picture = svg.document();
  EXPECT_EQ(xml_fault(picture), "");
  EXPECT_THAT(picture, Not(HasSubstr("<script")));
  EXPECT_THAT(picture, HasSubstr("points=\"0.0,0.0 10.3,20.0 \""));
  EXPECT_THAT(picture, HasSubstr("<title>&lt;b&gt;</title></circle>"));
  EXPECT_THAT(picture, HasSubstr("<title>&quot;quoted&quot;</title></path>"));
}

TEST(XmlTest, TheCheckOfThisTestFindsFaults) {
  for (const char* const bad : {"<a>", "<a></b>", "<a>&</a>", "<a b=\"></a>", "<a <b/></a>", "<a"})
    EXPECT_NE(xml_fault(bad), "") << bad;
}

TEST(XmlTest, TextForXml) {
  EXPECT_EQ(xml_text("a<b>&\"c"), "a&lt;b&gt;&amp;&quot;c");
  EXPECT_EQ(xml_text("M\xc3\xbcller \xe2\x82\xac \xf0\x9f\x8e\xb2"),
            "M\xc3\xbcller \xe2\x82\xac \xf0\x9f\x8e\xb2");
  EXPECT_EQ(xml_text(std::string_view("\0\x1b\x7f\n", 4)), "????");
  EXPECT_EQ(xml_text("\xff\xc3"), "??");
  EXPECT_EQ(xml_text("\xef\xbf\xbf"), "?");
}

}  // namespace
}  // namespace wd::plot
