// timed_algorithms_test.cpp: what was measured once is used by all that come later, and after a resume.
#include "src/nets/timed_algorithms.h"

#include <gtest/gtest.h>

namespace wd {
namespace {

using Order = std::vector<std::size_t>;

struct Choices : testing::Test {
  ~Choices() override { timed_algorithms::forget(); }

  static Order find(const std::string& key, const Order& measured, std::size_t count = 3) {
    return timed_algorithms::of(key, count, [&] { return Candidates(measured); }).order();
  }
};

TEST_F(Choices, AreMeasuredOnce) {
  EXPECT_EQ(find("NVIDIA H200: 1,2", {2, 0, 1}), Order({2, 0, 1}));
  EXPECT_EQ(find("NVIDIA H200: 1,2", {0, 1, 2}), Order({2, 0, 1}));
  EXPECT_EQ(find("NVIDIA H200: 1,3", {0, 1, 2}), Order({0, 1, 2}));
}

TEST_F(Choices, AreThoseOfTheTextThatIsRestored) {
  find("a: b 1,2", {2, 0});
  find("none", {}, 0);
  const std::string text = timed_algorithms::save();
  timed_algorithms::forget();
  EXPECT_EQ(timed_algorithms::save(), "");
  timed_algorithms::restore(text);
  EXPECT_EQ(timed_algorithms::save(), text);
  EXPECT_EQ(find("a: b 1,2", {0, 1, 2}), Order({2, 0}));
  EXPECT_EQ(find("none", {0}, 0), Order());
}

TEST_F(Choices, MayBeMeasuredByComparingOthers) {
  const auto pair = [] { return Candidates(find("one", {1, 0}).front() == 1 ? Order{1, 0} : Order{0, 1}); };
  EXPECT_EQ(timed_algorithms::of("weights", 2, pair).order(), Order({1, 0}));
  EXPECT_EQ(timed_algorithms::save(), "one: 1 0\nweights: 1 0\n");
}

// A library that offers fewer algorithms has numbered them differently.
TEST_F(Choices, WithNumbersThatAreGoneAreMeasuredAgain) {
  timed_algorithms::restore("key: 2 0\n");
  EXPECT_EQ(find("key", {1, 0}, 2), Order({1, 0}));
}

TEST_F(Choices, OfAnotherFormAreRefused) {
  find("kept", {1});
  const std::string text = timed_algorithms::save();
  for (const char* wrong : {"no numbers", "key: 1 x", "key: 1 2,3", "key: -"})
    EXPECT_THROW(timed_algorithms::restore(wrong), std::runtime_error) << wrong;
  EXPECT_EQ(timed_algorithms::save(), text);
}

}  // namespace
}  // namespace wd
