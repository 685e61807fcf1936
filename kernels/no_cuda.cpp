// no_cuda.cpp: in a build without CUDA, the CUDA side of kernels that do not use WD_KERNEL (wd/kernel.h): the
// declarations of the headers become definitions that throw.
#include <stdexcept>

#define WD_CUDA_KERNEL(name, ...)                                                       \
  namespace cuda {                                                                      \
  void name(void*, __VA_ARGS__) { throw std::runtime_error("this build has no CUDA"); } \
  }
#pragma GCC diagnostic ignored "-Wunused-parameter"

#include "kernels/adam.h"
#include "kernels/cell.h"
#include "kernels/chain.h"
#include "kernels/episodes.h"
#include "kernels/finite.h"
#include "kernels/gather.h"
#include "kernels/hidden_gradient.h"
#include "kernels/layer_norm.h"
#include "kernels/noise_gradient.h"
#include "kernels/perceptron.h"
#include "kernels/random_actions.h"
#include "kernels/reduce.h"
#include "kernels/table_layer.h"
