// adam_body.h: decides a step, and changes one parameter, the same code on both devices.
#pragma once

#include "kernels/adam.h"
#include "kernels/record_body.h"
#include "wd/detail/bfloat16.h"
#include "wd/math.h"

namespace wd {

WD_FN bool is_finite(double v) { return v - v == 0.0; }

// base^n by squaring.
WD_FN double power(double base, std::int64_t n) {
  double product = 1.0;
  for (; n > 0; n /= 2, base *= base) {
    if (n % 2 == 1) product *= base;
  }
  return product;
}

WD_FN void begin_record(const BeginUpdateArgs& args, std::int64_t) {
  if (args.record->refused != 0.0) return;
  *args.record = StepRecord{};
  args.record->lr = *args.lr;
  args.record->max_grad_norm = args.max_grad_norm == nullptr ? HUGE_VAL : *args.max_grad_norm;
  args.record->stopped = args.failed != nullptr && *args.failed != 0 ? 1.0 : 0.0;
}

// See Learned::follow.
WD_FN void follow_limited_sum(const RecordLossArgs& args, StepRecord& record) {
  if (args.rate == nullptr || record.steps == 0.0 || !(args.totals[0] > 0.0)) return;
  const double mean = args.totals[args.limited] / args.totals[0];
  double rate = *args.rate;
  if (mean > 2.0 * args.followed) rate = max(rate / 1.5, 1e-5);
  if (mean < 0.5 * args.followed) rate = min(rate * 1.5, 1e-2);
  *args.rate = record.lr = rate;
}

// Updates the record for the minibatch whose summed gradient has this sum of squares: whether it makes a
// step, and the factors of the step.
WD_FN void decide_step(const AdamArgs& args, double squares) {
  StepRecord& record = *args.record;
  const StepInput input = record_losses(args.losses, record);
  record.made = 0.0;
  if (record.stopped != 0.0) return;
  if (input.stop != 0.0) {
    record.stopped = 1.0;
    return;
  }
  follow_limited_sum(args.losses, record);
  const double inverse_count = input.count > 0.0 ? 1.0 / input.count : 1.0;
  const double norm = sqrt(squares) * inverse_count;
  const bool finite = is_finite(norm + input.check);
  if (input.count == 0.0 && finite) {
    record.empty += 1.0;
    return;
  }
  record.norm = norm;
  record.norm_sum += norm;
  record.steps += 1.0;
  if (!finite) {
    record.refused += 1.0;
    record.stopped = 1.0;
    return;
  }
  const std::int64_t step = ++*args.steps;
  record.made = 1.0;
  record.scale = inverse_count * min(record.max_grad_norm / (record.norm + 1e-6), 1.0);
  record.step_size = record.lr / (1.0 - power(args.beta1, step));
  record.inverse_root = 1.0 / sqrt(1.0 - power(args.beta2, step));
}

struct AdamFactors {
  float scale, step_size, inverse_root, share1, beta2, share2, epsilon;

  WD_FN static AdamFactors of(const AdamArgs& args) {
    const StepRecord& record = *args.record;
    return {static_cast<float>(record.scale),
            static_cast<float>(record.step_size),
            static_cast<float>(record.inverse_root),
            static_cast<float>(1.0 - args.beta1),
            static_cast<float>(args.beta2),
            static_cast<float>(1.0 - args.beta2),
            args.epsilon};
  }
};

WD_FN void adam_element(const AdamFactors& f, float gradient, float& parameter, float& first, float& second) {
  const float g = gradient * f.scale;
  first += (g - first) * f.share1;
  second = second * f.beta2 + g * g * f.share2;
  parameter -= f.step_size * first / (sqrt(second) * f.inverse_root + f.epsilon);
}

}  // namespace wd
