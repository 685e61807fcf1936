// bell_library.cpp: bell.h for processes that are written in Python: a library of its own, libwd_bell, which
// ctypes loads.
#include "src/outside/bell.h"

extern "C" {

__attribute__((visibility("default"))) void wd_ring(std::int32_t* word, std::int32_t value) {
  wd::outside::ring(*reinterpret_cast<wd::outside::Word*>(word), value);
}

__attribute__((visibility("default"))) int wd_wait(const std::int32_t* word, std::int32_t old,
                                                   int microseconds, int milliseconds) {
  return wd::outside::wait(*reinterpret_cast<const wd::outside::Word*>(word), old, microseconds,
                           milliseconds);
}
}
