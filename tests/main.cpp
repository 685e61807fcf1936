// main.cpp: runs all tests of a folder, or only those of one file with --file=FOLDER/NAME_test.cpp.
#include <gmock/gmock.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

namespace {

// A filter that lists every test of the file, based on the file names recorded by GoogleTest.
std::string tests_of(std::string_view file) {
  std::string filter;
  const auto& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (!std::string_view(test.file()).ends_with(file)) continue;
      filter += std::string(filter.empty() ? "" : ":") + suite.name() + "." + test.name();
    }
  }
  return filter;
}

// With WD_NEED_GPU=1, a machine is meant to have a GPU: a test that skips itself for want of one fails.
class NoSkips : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& test) override {
    if (!test.result()->Skipped()) return;
    ++skipped_;
    std::cerr << "WD_NEED_GPU=1, but " << test.test_suite_name() << "." << test.name() << " skipped itself\n";
  }
  int skipped_ = 0;

 public:
  int skipped() const { return skipped_; }
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  constexpr std::string_view kOption = "--file=";
  if (argc == 2 && std::string_view(argv[1]).starts_with(kOption)) {
    const std::string file = std::string("/") + (argv[1] + kOption.size());
    const std::string filter = tests_of(file);
    if (filter.empty()) {
      std::cerr << "no test stands in a file *" << file << '\n';
      return 2;
    }
    if (GTEST_FLAG_GET(filter) == "*") GTEST_FLAG_SET(filter, filter);
  } else if (argc != 1) {
    std::cerr << "usage: " << argv[0] << " [--file=FOLDER/NAME_test.cpp] [--gtest_...]\n";
    return 2;
  }
  const char* const need = std::getenv("WD_NEED_GPU");
  if (need == nullptr || std::string_view(need) != "1") return RUN_ALL_TESTS();
  auto* const skips = new NoSkips;  // GoogleTest deletes it
  testing::UnitTest::GetInstance()->listeners().Append(skips);
  const int result = RUN_ALL_TESTS();
  return result != 0 ? result : skips->skipped() > 0 ? 1 : 0;
}
