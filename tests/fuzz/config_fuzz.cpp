// config_fuzz.cpp: libFuzzer target that reads any bytes as a configuration.
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  wd::test::feed_config({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
