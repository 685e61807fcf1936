// main.cpp: runs all tests of a folder, or only those of one file with --file=FOLDER/NAME_test.cpp.
#include <fnmatch.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

// Whether the gate leaves out this case of a file, as kernels/adam_test (tests/gate.txt, read as by
// tests/conftest.py).
class Gate {
 public:
  Gate() {
    const char* const gate = std::getenv("WD_GATE");
    const char* const source = std::getenv("WD_SOURCE_DIR");
    if (gate == nullptr || std::string_view(gate) != "1" || source == nullptr) return;
    std::ifstream list(std::string(source) + "/tests/gate.txt");
    for (std::string line; std::getline(list, line);) {
      std::istringstream words(line);
      std::string verb, file;
      if (!(words >> verb >> file) || verb.starts_with('#')) continue;
      std::vector<std::string>& patterns = (verb == "keep" ? keep_ : drop_)[file];
      for (std::string pattern; words >> pattern;) patterns.push_back(pattern);
    }
  }
  bool leaves_out(const std::string& file, const std::string& name) const {
    const auto matches = [&](const auto& rules) {
      const auto& [key, patterns] = *rules.find(file);
      return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
        return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
      });
    };
    return (keep_.contains(file) && !matches(keep_)) || (drop_.contains(file) && matches(drop_));
  }

 private:
  std::map<std::string, std::vector<std::string>> keep_, drop_;  // patterns by file
};

// A filter that lists every test of the file, based on the file names recorded by GoogleTest, but those that
// the gate leaves out.
std::string tests_of(std::string_view file, bool& exists) {
  const Gate gate;
  const std::string key(file.substr(1, file.rfind('.') - 1));
  std::string filter;
  const auto& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (!std::string_view(test.file()).ends_with(file)) continue;
      exists = true;
      if (gate.leaves_out(key, std::string(suite.name()) + "." + test.name())) continue;
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
    bool exists = false;
    const std::string filter = tests_of(file, exists);
    if (exists && filter.empty()) {
      std::cout << "[  PASSED  ] 0 tests.\n[  SKIPPED ] all: only in ./wd test --all (tests/gate.txt)\n";
      return 0;
    }
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
