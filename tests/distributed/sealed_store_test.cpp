// sealed_store_test.cpp: workers believe only values of the store that workers of their job wrote.
#include "src/distributed/sealed_store.h"

#include <gmock/gmock.h>

#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "wd/error.h"

namespace wd {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;
constexpr std::chrono::milliseconds kShort(100);

Bytes bytes(const std::string& text) { return {text.begin(), text.end()}; }

struct SealedStore : testing::Test {
  Store open = c10::make_intrusive<c10d::HashStore>();
  Store view(const std::string& token = "token", const std::string& session = "session") {
    Store store = make_sealed(open, token, session);
    store->setTimeout(kShort);
    return store;
  }
  void expect_refused(const Store& reader, const std::string& key) {
    try {
      reader->get(key);
      ADD_FAILURE() << key << " was believed";
    } catch (const PeerError& error) {
      EXPECT_THAT(error.what(),
                  HasSubstr("the value of " + key + " in the job's store was not written by a"));
    }
  }
};

TEST_F(SealedStore, AWorkersValueIsBelieved) {
  const Bytes value = {0, 1, 255, ' ', 0};  // of any bytes
  view()->set("0/1", value);
  EXPECT_EQ(view()->get("0/1"), value);
  view()->set("empty", Bytes{});
  EXPECT_EQ(view()->get("empty"), Bytes{});
  EXPECT_EQ(view()->clone()->get("0/1"), value);
}

TEST_F(SealedStore, ValuesOfOthersAreRefused) {
  view()->set("0/1", bytes("address"));
  const Bytes sealed = open->get("0/1");
  Bytes changed = sealed;
  changed.back() ^= 1;
  open->set("changed", changed);
  open->set("plain", bytes("address"));
  open->set("none", Bytes{});
  open->set("moved", sealed);  // a true value, under another key
  for (const char* key : {"changed", "plain", "none", "moved"}) expect_refused(view(), key);
  expect_refused(view("another token"), "0/1");
  expect_refused(view("token", "an earlier session"), "0/1");
}

TEST_F(SealedStore, ATrueValueThatComesLaterIsTaken) {
  open->set("0/1", bytes("false"));
  std::thread later([this] {
    std::this_thread::sleep_for(kShort / 4);
    view()->set("0/1", bytes("true"));
  });
  const Store reader = view();
  reader->setTimeout(100 * kShort);
  EXPECT_EQ(reader->get("0/1"), bytes("true"));
  later.join();
}

TEST_F(SealedStore, CountersAndKeysArePassedOn) {
  EXPECT_EQ(view()->add("n", 2), 2);
  EXPECT_EQ(open->add("n", 1), 3);
  EXPECT_TRUE(view()->check({"n"}));
  EXPECT_FALSE(view()->check({"other"}));
  EXPECT_TRUE(view()->deleteKey("n"));
}

}  // namespace
}  // namespace wd
