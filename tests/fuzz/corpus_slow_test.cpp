// corpus_slow_test.cpp: feeds every file of the stored corpora to the functions that libFuzzer calls.
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "tests/fuzz/targets.h"
#include "tests/run/temporary_folder.h"
#include "tests/slowdown.h"

namespace wd::test {
namespace {

void feed_in_time(void (*feed)(std::string_view), const std::string& bytes) {
  const std::clock_t start = std::clock();  // CPU time, because the machine may be busy
  feed(bytes);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 1.0 * kSlowdown);
}

void feed_all(const std::string& corpus, void (*feed)(std::string_view)) {
  const auto folder = std::filesystem::path(std::getenv("WD_SOURCE_DIR")) / "tests/fuzz/corpus" / corpus;
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path());
    EXPECT_NO_THROW(feed_in_time(feed, read_text(entry.path())));
    ++files;
  }
  EXPECT_GT(files, 20u) << folder;
}

TEST(Corpus, Config) { feed_all("config", feed_config); }
TEST(Corpus, Manifest) { feed_all("manifest", feed_manifest); }
TEST(Corpus, Safetensors) { feed_all("safetensors", feed_safetensors); }

// A manifest can be a megabyte long: too much for recursion or for quadratic time.
TEST(Corpus, LongManifests) {
  const std::size_t deep = 500'000;
  feed_in_time(feed_manifest, "{\"format_version\":" + std::string(deep, '[') + std::string(deep, ']') + "}");
  std::string keys = "{\"format_version\":1";
  for (int key = 0; keys.size() < 1'000'000; ++key) keys += ",\"" + std::to_string(key) + "\":0";
  feed_in_time(feed_manifest, keys + "}");
}

}  // namespace
}  // namespace wd::test
