// adam.cpp: Adam by torch's fused kernel.
#include "src/algorithm/adam.h"

#include <ATen/ATen.h>

namespace wd {

Adam::Adam(const at::Tensor& parameters, double epsilon)
    : parameters_(parameters),
      first_moment_(at::zeros_like(parameters)),
      second_moment_(at::zeros_like(parameters)),
      steps_(at::zeros({}, parameters.options())),
      epsilon_(epsilon) {}

void Adam::step(const at::Tensor& gradients, double lr, const at::Tensor& skip) {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kWeightDecay = 0.0;
  steps_.add_(1).sub_(skip);
  at::_fused_adam_({parameters_}, {gradients}, {first_moment_}, {second_moment_}, {}, {steps_}, lr, kBeta1,
                   kBeta2, kWeightDecay, epsilon_, /*amsgrad=*/false, /*maximize=*/false, /*grad_scale=*/{},
                   /*found_inf=*/skip);
}

}  // namespace wd
