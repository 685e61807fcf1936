// table_test.cpp: every key gets 0, -1, 2^31, 2^63, 1e309, nan, nothing and text. Each value is accepted, or
// rejected with the key's name and range.
#include <cmath>

#include "src/config/numbers.h"
#include "tests/config/fixture.h"

namespace wd::test {
namespace {

struct Key {
  std::string path;
  bool number = false;
  double limit = INFINITY;  // of the type
  bool whole = false;
  Range range = {};
};

// Records every key with its range.
class Keys : public Fields {
 public:
  std::vector<Key> keys;
  std::string prefix;

  void operator()(const char* name, bool&, const char*) override { add(name); }
  void operator()(const char* name, int&, Range range, const char*) override {
    add(name, 0x1p31 - 1, true, range);
  }
  void operator()(const char* name, std::int64_t&, Range range, const char*) override {
    add(name, 0x1p63 - 1024, true, range);
  }
  void operator()(const char* name, float&, Range range, const char*) override {
    add(name, 3.5e38, false, range);
  }
  void operator()(const char* name, double&, Range range, const char*) override {
    add(name, 1e308, false, range);
  }
  void choice(const char* name, int&, std::span<const char* const>, const char*) override { add(name); }
  void operator()(const char* name, std::string&, const char*) override { add(name); }
  void operator()(const char* name, std::vector<int>&, Range, const char*) override { add(name); }
  void operator()(const char* name, Schedule&, Range range, const char*) override {
    add(name, 1e308, false, range);
  }
  void operator()(const char* name, std::vector<std::string>&, const char*) override { add(name); }
  void operator()(const char* name, std::optional<double>&, Range range, const char*) override {
    add(name, 1e308, false, range);
  }

 private:
  void add(const char* name) { keys.push_back({prefix + name}); }
  void add(const char* name, double limit, bool whole, Range range) {
    keys.push_back({prefix + name, true, limit, whole, range});
  }
};

std::vector<Key> all_keys() {
  Keys keys;
  const auto add = [&](const char* prefix, auto settings) {
    keys.prefix = prefix;
    settings.describe(keys);
  };
  add("env.", EnvSettings{});
  add("env.", Chase{});
  add("trainer.", TrainerSettings{});
  add("saving.", SavingSettings{});
  add("autoscale.", AutoscaleSettings{});
  add("policy.tagger.", PolicySettings{});
  add("policy.tagger.model.", ModelSettings{});
  return keys.keys;
}

using Table = ConfigTest;

TEST_F(Table, I2_EveryKeyTakesOrRefusesEveryValue) {
  const std::pair<const char*, double> values[] = {{"0", 0},
                                                   {"-1", -1},
                                                   {"2147483648", 0x1p31},
                                                   {"9223372036854775808", 0x1p63},
                                                   {"-9223372036854775809", -0x1p64},
                                                   {"1e309", INFINITY},
                                                   {".nan", NAN},
                                                   {"-.inf", -INFINITY},
                                                   {"0.5", 0.5},
                                                   {"", NAN},
                                                   {"word", NAN}};
  for (const Key& key : all_keys()) {
    if (!key.number) continue;
    for (const auto& [text, value] : values) {
      const std::string message = refusal("name: chase", {key.path + "=" + text});
      const bool whole = !key.whole || value == std::floor(value);
      const bool good =
          std::isfinite(value) && whole && std::abs(value) <= key.limit && key.range.contains(value);
      const std::string about = "--set: " + key.path + " = ";
      if (good) {
        EXPECT_FALSE(message.starts_with(about) && message.ends_with("]") &&
                     message.find("must be in") != message.npos)
            << message;
      } else {
        EXPECT_TRUE(message.starts_with(about)) << key.path << "=" << text << ": " << message;
        EXPECT_NE(message.find(config::format(key.range)), std::string::npos) << message;
      }
    }
  }
}

TEST_F(Table, KeysThatAreNoNumbersRefuseNothingAndSections) {
  for (const Key& key : all_keys()) {
    if (key.number) continue;
    for (const char* text : {"", "{a: 1}"}) {
      const std::string message = refusal("name: chase", {key.path + "=" + text});
      EXPECT_TRUE(message.starts_with("--set: " + key.path + " = ")) << key.path << ": " << message;
    }
  }
}

TEST_F(Table, EveryMisspelledKeyIsSuggested) {
  for (const Key& key : all_keys()) {
    const std::string name = key.path.substr(key.path.rfind('.') + 1);
    const std::string message = refusal("name: chase", {key.path + "x=1"});
    EXPECT_NE(message.find("unknown key; did you mean \""), std::string::npos) << key.path << ": " << message;
  }
}

}  // namespace
}  // namespace wd::test
