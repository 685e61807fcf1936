// nccl_no_cuda.cpp: a build without CUDA has no NCCL.
#include "src/distributed/backends.h"
#include "wd/error.h"

namespace wd {

Backend make_nccl(const Store&, const Membership&, Device, std::chrono::milliseconds) {
  throw std::runtime_error("this build has no CUDA, and so no NCCL");
}

}  // namespace wd
