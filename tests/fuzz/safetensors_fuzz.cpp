// safetensors_fuzz.cpp: libFuzzer target that reads any bytes as a tensor file, and as the header of one.
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  wd::test::feed_safetensors({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
