// generated.h: generated sections of documents, between two markers.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace wd::test {

// An unescaped bar would end the table cell.
inline std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

// Checks that the generated section of the document equals `text`; with WD_UPDATE_DOCS=1, writes `text`
// there.
inline void expect_generated(const std::string& document, const std::string& text) {
  constexpr char kBegin[] = "<!-- begin generated -->\n", kEnd[] = "<!-- end generated -->\n";
  const char* const source = std::getenv("WD_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  const std::string path = std::string(source) + "/" + document;
  std::ostringstream read;
  read << std::ifstream(path).rdbuf();
  const std::string old = read.str();
  const std::size_t begin = old.find(kBegin), end = old.find(kEnd);
  ASSERT_NE(begin, std::string::npos) << path;
  ASSERT_NE(end, std::string::npos) << path;
  const std::size_t first = begin + sizeof(kBegin) - 1;
  if (std::getenv("WD_UPDATE_DOCS") != nullptr) {
    std::ofstream(path) << old.substr(0, first) << text << old.substr(end);
    return;
  }
  EXPECT_EQ(old.substr(first, end - first), text) << "run this test with WD_UPDATE_DOCS=1";
}

}  // namespace wd::test
