// json_test.cpp: limits on the nesting depth of JSON.
#include "src/base/json.h"

#include <gmock/gmock.h>

#include "tests/run/temporary_folder.h"
#include "wd/error.h"

namespace wd {
namespace {

using testing::HasSubstr;

std::string nested(int depth) {
  const auto count = static_cast<std::size_t>(depth);
  return std::string(count, '[') + std::string(count, ']');
}

TEST(Json, IsReadDownToItsDepth) {
  EXPECT_FALSE(is_too_deep(nested(kDeepestJson)));
  EXPECT_TRUE(is_too_deep(nested(kDeepestJson + 1)));
  EXPECT_TRUE(is_too_deep(std::string(1'000'000, '{')));
  std::string wide = "[";
  for (int k = 0; k < 1000; ++k) wide += "[{}],";
  EXPECT_FALSE(is_too_deep(wide + "0]"));
  EXPECT_EQ(parse_json(nested(kDeepestJson)).dump(), nested(kDeepestJson));
  EXPECT_TRUE(parse_json(nested(kDeepestJson + 1)).is_discarded());
}

TEST(Json, BracketsInStringsDoNotCount) {
  const std::string many(100, '[');
  EXPECT_EQ(parse_json("\"" + many + "\""), many);
  EXPECT_EQ(parse_json("[\"" + many + "\\\"" + many + "\"]")[0], many + "\"" + many);
  EXPECT_TRUE(is_too_deep("[\"\\\\\"," + many)) << "a backslash that is escaped ends no string";
}

TEST(Json, ObjectsAreNoLongerThanTheirParserIsFast) {
  const auto object = [](int members) {
    std::string text = "{\"a\":[1,2,{}],\"b\":\"{,,,\"";
    for (int k = 2; k < members; ++k) text += concat(",\"", k, "\":0");
    return text + "}";
  };
  EXPECT_FALSE(parse_json<nlohmann::ordered_json>(object(kMostMembers)).is_discarded());
  EXPECT_TRUE(parse_json<nlohmann::ordered_json>(object(kMostMembers + 1)).is_discarded());
  EXPECT_FALSE(parse_json(object(kMostMembers + 1)).is_discarded()) << "sorted objects may have any length";
  std::string list = "[0";
  for (int k = 0; k < kMostMembers; ++k) list += ",0";
  EXPECT_FALSE(parse_json<nlohmann::ordered_json>(list + "]").is_discarded());
}

TEST(Json, SaysWhatIsWrong) {
  EXPECT_THAT(test::message_of([] { parse_written_json(nested(kDeepestJson + 1)); }),
              HasSubstr("is nested deeper than 32 levels"));
  const std::string message = test::message_of([] { parse_written_json("{\"a\": 1,}"); });
  EXPECT_THAT(message, testing::StartsWith("is not JSON: parse error at line 1, column 9"));
}

}  // namespace
}  // namespace wd
