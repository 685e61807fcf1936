// no_cuda.cpp: the CUDA side of every kernel in a build without CUDA: the declarations of the headers become
// definitions that throw.
#include <stdexcept>

#define WD_CUDA_KERNEL(name, ...)                                                       \
  namespace cuda {                                                                      \
  void name(void*, __VA_ARGS__) { throw std::runtime_error("this build has no CUDA"); } \
  }
#pragma GCC diagnostic ignored "-Wunused-parameter"

#include "kernels/actor.h"
#include "kernels/adam.h"
#include "kernels/assign_minibatches.h"
#include "kernels/clock.h"
#include "kernels/columns.h"
#include "kernels/critics.h"
#include "kernels/entities.h"
#include "kernels/episodes.h"
#include "kernels/evidence.h"
#include "kernels/finite.h"
#include "kernels/gather.h"
#include "kernels/layer_norm.h"
#include "kernels/loss.h"
#include "kernels/noise_gradient.h"
#include "kernels/normalize.h"
#include "kernels/per_choice.h"
#include "kernels/polyak.h"
#include "kernels/pool.h"
#include "kernels/random_actions.h"
#include "kernels/record.h"
#include "kernels/reduce.h"
#include "kernels/replay.h"
#include "kernels/returns.h"
#include "kernels/running.h"
#include "kernels/sample.h"
#include "kernels/sequences.h"
#include "kernels/table_layer.h"
#include "kernels/td.h"
#include "kernels/transitions.h"
#include "kernels/units.h"
#include "kernels/values.h"
