// document_test.cpp: any bytes give a tree or a problem with its position, within a second.
#include "src/config/document.h"

#include <gtest/gtest.h>

#include <ctime>
#include <random>

#include "tests/slowdown.h"

namespace wd::config {
namespace {

std::string refusal(const std::string& text) {
  Problems problems;
  Node tree;
  const bool good = parse_document(text, "f", problems, tree);
  EXPECT_EQ(good, problems.empty());
  return good ? "" : problems.lines().front();
}

TEST(Document, KeepsOrderPlacesAndQuotes) {
  Problems problems;
  Node tree;
  ASSERT_TRUE(parse_document("b: 1\na: {c: [x, \"2\"]}\nempty:\n", "f", problems, tree));
  ASSERT_EQ(tree.entries.size(), 3u);
  EXPECT_EQ(tree.entries[0].key, "b");
  EXPECT_EQ(tree.find("b")->place.full(), "f:1:4");
  const Node& list = *tree.find("a")->find("c");
  EXPECT_EQ(list.items[0].text, "x");
  EXPECT_FALSE(list.items[0].quoted);
  EXPECT_TRUE(list.items[1].quoted);
  EXPECT_EQ(list.items[1].place.full(), "f:2:12");
  EXPECT_EQ(tree.find("empty")->kind, Node::Kind::kNull);
  EXPECT_EQ(tree.find("empty")->place.full(), "f:3:1");
  EXPECT_EQ(tree.find("none"), nullptr);
}

TEST(Document, RefusesWhatItDoesNotUse) {
  const std::pair<const char*, const char*> cases[] = {
      {"a: 1\na: 2\n", "f:2:1: duplicate key \"a\""},
      {"a: {b: 1, b: 1}", "f:1:11: duplicate key \"b\""},
      {"a: &x 1\n", "f:1:4: anchors (&name) are not supported: write the value out"},
      {"a: &x {b: *x}\n", "f:1:4: anchors (&name) are not supported: write the value out"},
      {"a: *x\n", "f:1:4: aliases (*name) are not supported: write the value out"},
      {"a: {<<: {b: 1}}", "f:1:5: merge keys (<<) are not supported: write the values out"},
      {"a: 1\n---\nb: 2\n", "f:2:1: a second document; a file holds one"},
      {"a: !!int 1\n", "f:1:4: tags are not supported: remove \"tag:yaml.org,2002:int\""},
      {"a: !mine {b: 1}\n", "f:1:4: tags are not supported: remove \"!mine\""},
      {"{[a]: 1}", "f:1:2: a key must be a word"},
      {": 1", "f:1:1: a key must be a word"},
      {"null: 1", "f:1:1: a key must be a word"},
      {"a: [1, 2\n", "f:2:1: not YAML: end of sequence flow not found"},
      {"a: b: c", "f:1:5: not YAML: illegal map value"},
      {"a: \"b", "f:1:6: not YAML: illegal EOF in scalar"},
      {"a:\n\tb: 1", "f:2:1: not YAML: a tab: lines are indented by spaces"},
      {"a:\n  b: 1\n  \tc: 2", "f:3:3: not YAML: a tab: lines are indented by spaces"},
      {"a: \x01", "f:1:4: a control character"},
      {"a: \xff", "f:1:4: not UTF-8 text"},
      {"\xff\xfe"
       "a",
       "f:1:1: not UTF-8 text"},
      {"\xc3\xa9: \xc3\xa9\xed\xa0\x80", "f:1:5: not UTF-8 text"},
      {"a: \"\\\xc3\xa9\"", "f:1:7: not YAML: unknown escape character: \\xc3"},
      {R"(a: "\N")", R"(f:1:4: the escapes \N and \_ are not supported: write \x85 or \xa0)"},
      {R"("\_": 1)", R"(f:1:1: the escapes \N and \_ are not supported: write \x85 or \xa0)"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(refusal(text), expected) << text;
  EXPECT_EQ(refusal(std::string("a: \0b", 5)), "f:1:4: a control character");
  EXPECT_EQ(refusal(std::string(33, '[') + std::string(33, ']')), "f:1:33: more than 32 levels deep");
  EXPECT_EQ(refusal(std::string(kMaxBytes + 1, 'a')), "f:1:1: larger than 262144 bytes");
}

TEST(Document, AcceptsWhatIsHarmless) {
  for (const char* text : {"", "# only a comment\n", "---\na: 1\n...\n",
                           "\xef\xbb\xbf"
                           "a: 1",
                           "a: 1\r\nb: 2\r\n"}) {
    EXPECT_EQ(refusal(text), "") << text;
  }
  EXPECT_EQ(refusal(std::string(32, '[') + std::string(32, ']')), "");
}

// Measures CPU time, because the machine may be busy.
double seconds(const std::string& text) {
  const std::clock_t start = std::clock();
  refusal(text);
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

std::string repeated(const std::string& piece, const std::string& head = "") {
  std::string text = head;
  while (text.size() + piece.size() <= kMaxBytes) text += piece;
  return text;
}

TEST(Document, I1_HostileTextsEndWithinASecond) {
  for (const char* piece : {"[",     "{",    "- ",  "? ",    "a: ",     "- a\n", "0,",      "a\n\n",
                            " \n",   "'",    "\"",  "! ",    "&a ",     "*a ",   "|\n a\n", "%A b\n",
                            "---\n", "{a: ", "{? ", "a:\n ", "[a: b, ", "? a\n", "\t",      "\\"}) {
    EXPECT_LT(seconds(repeated(piece)), 1.0 * kSlowdown) << piece;
  }
  for (const char* head : {"a: [", "a: \"", "a: |\n b"}) {
    for (const char* piece : {"[a, ", "\\n", "b\n\n", " \n"})
      EXPECT_LT(seconds(repeated(piece, head)), 1.0 * kSlowdown) << head << piece;
  }
}

// Tries more than typical mistakes: a good file with truncated, duplicated and flipped bytes.
TEST(Document, I1_MutatedTextsAreReadOrRefused) {
  const std::string good =
      "name: \"x\"\nenv: {a: 1, b: [1, 2.5]}\npolicy:\n  p:\n    lr: [[0, 1e-3], [1e6, 0]]\n    t: |\n      "
      "é\n  # c\n";
  std::mt19937 random(7);
  for (int round = 0; round < 10'000; ++round) {
    std::string text = good;
    for (unsigned edits = 1 + random() % 6; edits > 0; --edits) {
      const std::size_t at = random() % (text.size() + 1);
      switch (random() % 4) {
        case 0:
          text.resize(at);
          break;
        case 1:
          text.insert(at, 1, static_cast<char>(random()));
          break;
        case 2:
          text.insert(at, 1, "[]{}:,-?&*!|>%@#'\"\n\t "[random() % 22]);
          break;
        default:
          text.insert(at, text.substr(random() % (text.size() + 1), random() % 20));
      }
    }
    const std::string message = refusal(text);
    if (!message.empty()) {
      EXPECT_EQ(message.substr(0, 2), "f:") << message;
    }
  }
}

}  // namespace
}  // namespace wd::config
