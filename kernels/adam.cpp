// adam.cpp: the optimizer step on the CPU.
#include "kernels/adam_body.h"
#include "kernels/reduce.h"
#include "wd/detail/parallel.h"
#include "wd/detail/profile.h"
#include "wd/detail/vectors.h"

namespace wd {

namespace {

void change(const AdamArgs& args, std::int64_t begin, std::int64_t end) {
  const AdamFactors factors = AdamFactors::of(args);
  const float* __restrict gradient = args.gradient;
  float* __restrict parameter = args.parameter;
  float* __restrict first = args.first_moment;
  float* __restrict second = args.second_moment;
  for (std::int64_t i = begin; i < end; ++i)
    adam_element(factors, gradient[i], parameter[i], first[i], second[i]);
  if (args.shadow == nullptr) return;
  for (std::int64_t i = begin; i < end; ++i) args.shadow[i] = to_bfloat16(parameter[i]);
}

}  // namespace

void begin_update(Queue queue, const BeginUpdateArgs& args) {
  if (queue.cuda) return cuda::begin_update(queue.stream, args);
  begin_record(args, 0);
}

void adam(Queue queue, const AdamArgs& args) {
  if (queue.cuda) return cuda::adam(queue.stream, args);
  const profile::Scope scope("Adam");
  double squares = 0.0;
  sum_of_squares(queue, args.gradient, args.n, args.partial, &squares);
  decide_step(args, squares);
  if (args.record->made == 0.0) return;
  parallel_for(args.n, 8192,
               vectorized([&](std::int64_t begin, std::int64_t end) { change(args, begin, end); }));
}

}  // namespace wd
