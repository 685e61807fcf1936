// manifest_fuzz.cpp: libFuzzer target that reads any bytes as a checkpoint's manifest, and as the body of
// one.
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  wd::test::feed_manifest({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
