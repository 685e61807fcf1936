// strict_no_cuda.cpp: CudaCalls in a build without CUDA.
#include "src/device/strict.h"
#include "wd/error.h"

namespace wd::strict {

CudaCalls::CudaCalls() { throw UsageError("strict_device: this program was built without CUDA"); }
CudaCalls::~CudaCalls() = default;

}  // namespace wd::strict
