// actor_body.h: the actions of one row, and their gradient, the same code on both devices.
#pragma once

#include "kernels/distribution.h"
#include "wd/kernels/actor.h"

namespace wd {

WD_FN float actor_normal(const ActorDraw& draw, std::int64_t row, int component) {
  const auto iteration = static_cast<std::uint64_t>(draw.time->iteration);
  if (draw.sequences > 0) row = row % draw.sequences * draw.steps + row / draw.sequences;
  return Random::normal_of(
      philox({{static_cast<std::uint32_t>(draw.first_row + row),
               static_cast<std::uint32_t>(component) | static_cast<std::uint32_t>(draw.purpose) << 24,
               static_cast<std::uint32_t>(iteration),
               static_cast<std::uint32_t>(iteration >> 32) << 16 | static_cast<std::uint32_t>(draw.update)}},
             draw.key.key0, draw.key.key1));
}

WD_FN void actor_actions_row(const ActorActionsArgs& args, std::int64_t row) {
  const ActorRows& rows = args.rows;
  const float* const output = rows.output[row];
  float* const action = args.action[row];
  float log_prob = 0.0f;
  for (int k = 0; k < rows.components; ++k) {
    if (rows.distribution == Distribution::kPoint) {
      float shift = 0.0f;
      if (args.noise > 0.0f)
        shift = clamp(args.noise * actor_normal(rows.draw, row, k), -args.noise_clip, args.noise_clip);
      action[k] = clamp(tanh(output[k]) + shift, -1.0f, 1.0f);
      continue;
    }
    const GaussianDraw draw = GaussianDraw::of(output, rows.components, k, actor_normal(rows.draw, row, k));
    action[k] = tanh(draw.u);
    log_prob += draw.log_prob();
  }
  if (args.log_prob != nullptr) args.log_prob[row] = log_prob;
}

// With z fixed, d log pi / du = 2 tanh(u), by the correction for tanh; the density of u itself does not
// change but for the deviation.
WD_FN void actor_gradient_row(const ActorGradientArgs& args, std::int64_t row) {
  const ActorRows& rows = args.rows;
  const float* const output = rows.output[row];
  float* const grad = args.output_grad[row];
  const int C = rows.components;
  const float weight = args.weight[row],
              alpha = args.log_prob_weight == nullptr ? 0.0f : *args.log_prob_weight;
  for (int k = 0; k < (rows.distribution == Distribution::kPoint ? C : 2 * C); ++k) grad[k] = 0.0f;
  if (weight == 0.0f) return;
  for (int k = 0; k < C; ++k) {
    const float* const terms = args.action_grad[row] + k;
    float by_action = terms[0];
    for (int i = 1; i < args.terms; ++i) by_action += terms[i * args.action_grad_step];
    if (rows.distribution == Distribution::kPoint) {
      const float a = tanh(output[k]);
      grad[k] = weight * by_action * (1.0f - a) * (1.0f + a);
      continue;
    }
    const GaussianDraw draw = GaussianDraw::of(output, C, k, actor_normal(rows.draw, row, k));
    const float a = tanh(draw.u);
    const float by_u = by_action * (1.0f - a) * (1.0f + a) + alpha * 2.0f * a;
    grad[k] = weight * by_u;
    grad[C + k] = draw.clamped ? 0.0f : weight * (by_u * exp(draw.log_std) * draw.z - alpha);
  }
}

}  // namespace wd
