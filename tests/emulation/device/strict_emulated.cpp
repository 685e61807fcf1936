// strict_emulated.cpp: CudaCalls on the emulated GPU, whose operations report to strict::violation()
// themselves (torch_backend.cpp).
#include "src/device/strict.h"

namespace wd::strict {

CudaCalls::CudaCalls() = default;
CudaCalls::~CudaCalls() = default;

}  // namespace wd::strict
