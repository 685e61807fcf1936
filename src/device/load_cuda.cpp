// load_cuda.cpp: loads the part of the library that needs torch's CUDA libraries. They take 0.2 s to load, so
// they are left out where no driver is installed.
#include <dlfcn.h>

#include "src/device/gpu.h"
#include "wd/error.h"

namespace wd {

namespace {

// When libwd is loaded, and so before anything can ask torch for its CUDA side, which torch looks up once.
[[gnu::constructor]] void load() {
  if (::dlopen("libcuda.so.1", RTLD_LAZY) == nullptr)
    return set_no_gpu(concat("no NVIDIA driver is installed (", ::dlerror(), ")"), false);
  if (::dlopen(WD_CUDA_LIBRARY, RTLD_NOW | RTLD_GLOBAL) == nullptr)
    set_no_gpu(concat("the CUDA part of wd cannot be loaded: ", ::dlerror()), true);
}

}  // namespace

}  // namespace wd
