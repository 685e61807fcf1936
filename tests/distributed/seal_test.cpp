// seal_test.cpp: the examples of RFC 4231, and texts of every length around the block size against Python's
// hashlib.
#include "src/distributed/seal.h"

#include <gtest/gtest.h>

namespace wd {
namespace {

TEST(Seal, Rfc4231) {
  EXPECT_EQ(seal(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(seal("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(seal(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(seal(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

// hmac.new(b"k", b"".join(hmac.new(b"k", b"x" * n, "sha256").digest() for n in range(200)),
// "sha256").hexdigest()
TEST(Seal, EveryLength) {
  std::string all;
  for (std::size_t n = 0; n < 200; ++n) {
    const std::string hex = seal("k", std::string(n, 'x'));
    for (std::size_t k = 0; k < hex.size(); k += 2)
      all += static_cast<char>(std::stoi(hex.substr(k, 2), nullptr, 16));
  }
  EXPECT_EQ(seal("k", all), "9789efb57503a99a7de22c684618da5e69ba1d3f591f385fef5063d55313d0ca");
}

}  // namespace
}  // namespace wd
