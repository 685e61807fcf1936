// actor_data.h: actions of random rows and their gradients, on either device.
#pragma once

#include <vector>

#include "tests/kernels/random_data.h"
#include "wd/kernels/actor.h"

namespace wd {

struct ActorData {
  Distribution distribution = Distribution::kPoint;
  int rows = 0, components = 0;
  float noise = 0.0f, noise_clip = 0.0f, alpha = 0.0f;
  ActorDraw draw{};  // without the time, which is iteration 3
  std::vector<float> output, action_grad, weight;

  int width() const { return distribution == Distribution::kPoint ? components : 2 * components; }
};

struct ActorResult {
  std::vector<float> action, log_prob, grad;
  bool operator==(const ActorResult&) const = default;
};

// Some rows do not count. `far`: some deviations are beyond their limits.
inline ActorData random_actor(Draws& draws, Distribution distribution, int rows, int components,
                              bool far = true) {
  ActorData data{.distribution = distribution, .rows = rows, .components = components};
  data.draw.key = RandomKey::of(5, RandomUse::kActor);
  data.draw.update = 7, data.draw.purpose = 1;
  data.alpha = distribution == Distribution::kPoint ? 0.0f : 0.3f;
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < data.width(); ++k)
      data.output.push_back(k < components           ? draws.uniform(-1.5f, 1.5f)
                            : far && draws.one_in(8) ? draws.uniform(2.1f, 2.5f)
                                                     : draws.uniform(-2.0f, 0.5f));
    data.weight.push_back(draws.one_in(5) ? 0.0f : draws.uniform(0.5f, 2.0f));
  }
  data.action_grad = draws.uniforms(std::int64_t{rows} * components, -1.0f, 1.0f);
  return data;
}

template <typename Memory>
ActorResult run_actor(Memory memory, const ActorData& data) {
  const auto rows = static_cast<std::size_t>(data.rows), C = static_cast<std::size_t>(data.components);
  const std::size_t width = static_cast<std::size_t>(data.width());
  ActorDraw draw = data.draw;
  draw.time = memory.put(std::vector<TrainingTime>{{.iteration = 3}});
  const ActorActionsArgs actions{
      .rows = {data.rows, data.distribution, data.components, {memory.put(data.output), data.width()}, draw},
      .noise = data.noise,
      .noise_clip = data.noise_clip,
      .action = {memory.template make<float>(rows * C), data.components},
      .log_prob = data.distribution == Distribution::kPoint ? nullptr : memory.template make<float>(rows)};
  actor_actions(memory.queue(), actions);
  const ActorGradientArgs gradient{.rows = actions.rows,
                                   .action_grad = {memory.put(data.action_grad), data.components},
                                   .log_prob_weight = memory.put(std::vector{data.alpha}),
                                   .weight = memory.put(data.weight),
                                   .output_grad = {memory.template make<float>(rows * width), data.width()}};
  actor_gradient(memory.queue(), gradient);
  return {memory.get(actions.action.pointer, rows * C),
          actions.log_prob == nullptr ? std::vector<float>() : memory.get(actions.log_prob, rows),
          memory.get(gradient.output_grad.pointer, rows * width)};
}

}  // namespace wd
