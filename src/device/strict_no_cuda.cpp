// strict_no_cuda.cpp: no CUDA runtime, no calls of it.
#include "src/device/strict.h"
#include "wd/error.h"

namespace wd::strict {

CudaCalls::CudaCalls() { throw UsageError("strict_device: this program was built without CUDA"); }
CudaCalls::~CudaCalls() = default;

}  // namespace wd::strict
