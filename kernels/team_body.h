// team_body.h: value, target and loss of one team, the same code on both devices.
#pragma once

#include "kernels/td_body.h"
#include "wd/kernels/team.h"

namespace wd {

// Where the numbers of one team's mixer are.
struct MixerRow {
  TeamMixer mixer;
  const float* weights;

  WD_FN float first(int agent, int k) const { return abs(weights[agent * mixer.units + k]); }
  WD_FN float sum(const float* q, int k) const {  // q W1 + b1
    float sum = weights[mixer.agents * mixer.units + k];
    for (int i = 0; i < mixer.agents; ++i) sum += q[i] * first(i, k);
    return sum;
  }
  WD_FN static float elu(float x) { return x > 0.0f ? x : exp(x) - 1.0f; }
  WD_FN const float* second() const { return weights + (mixer.agents + 1) * mixer.units; }

  WD_FN float value(const float* q) const {
    float value = 0.0f;
    if (mixer.units == 0) {
      for (int i = 0; i < mixer.agents; ++i) value += q[i];
      return value;
    }
    for (int k = 0; k < mixer.units; ++k) value += abs(second()[k]) * elu(sum(q, k));
    return value + second()[mixer.units];
  }

  // Writes the gradient of slope * value by the numbers of the mixer, and calls add(i, number) with the parts
  // of that by the value of agent i.
  template <typename Add>
  WD_FN void gradient(const float* q, float slope, float* grad, const Add& add) const {
    const int A = mixer.agents, M = mixer.units;
    const auto sign = [](float x) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : 0.0f; };
    if (M == 0) {
      for (int i = 0; i < A; ++i) add(i, slope);
      return;
    }
    for (int k = 0; k < M; ++k) {
      const float x = sum(q, k), w = second()[k];
      const float through = slope * abs(w) * (x > 0.0f ? 1.0f : exp(x));
      for (int i = 0; i < A; ++i) {
        grad[i * M + k] = through * q[i] * sign(weights[i * M + k]);
        add(i, through * first(i, k));
      }
      grad[A * M + k] = through;
      grad[(A + 1) * M + k] = slope * elu(x) * sign(w);
    }
    grad[(A + 2) * M] = slope;
  }
};

WD_FN void team_value_row(const TeamValueArgs& args, std::int64_t team) {
  const int A = args.mixer.agents;
  float* const q = args.q + team * A;
  bool plays = false;
  for (int i = 0; i < A; ++i) {
    const bool in_game = args.in_game[team * A + i] != 0;
    q[i] = in_game ? args.value[team * A + i] : 0.0f;
    plays = plays || in_game;
  }
  args.team_value[team] =
      plays ? MixerRow{args.mixer, args.weights + team * args.weights_stride}.value(q) : 0.0f;
}

WD_FN void team_target_row(const TeamTargetArgs& args, std::int64_t team) {
  const int A = args.mixer.agents, choices = args.layout.columns();
  float* const q = args.q + team * A;
  float reward = 0.0f, discount = 0.0f;
  for (int i = 0; i < A; ++i) {
    const std::int64_t row = team * A + i;
    reward += args.reward[row];
    discount = max(discount, args.discount[row]);
    q[i] = 0.0f;
    if (args.discount[row] == 0.0f) continue;
    const float* const value = args.value + row * args.value_stride;
    each_best_choice(args.layout, args.select + row * args.select_stride,
                     args.legal == nullptr ? nullptr : args.legal + row * choices,
                     [=](int column) { q[i] += value[column]; });
  }
  args.target[team] = reward;
  if (discount != 0.0f)
    args.target[team] += discount * MixerRow{args.mixer, args.weights + team * args.weights_stride}.value(q);
}

// Sets q to the values of what the agents of a team did, and the gradients of their rows to 0. Returns the
// team's weight.
WD_FN float values_of_team(const TeamLossArgs& args, std::int64_t first_row, float* q) {
  const ActionLayout& layout = args.layout;
  float weight = 0.0f;
  for (int i = 0; i < args.mixer.agents; ++i) {
    const std::int64_t row = first_row + i;
    const float own = weight_of_row(args, row);
    weight = max(weight, own);
    q[i] = own == 0.0f ? 0.0f
                       : value_of_action(layout, args.output + row * args.output_stride,
                                         args.action + row * layout.num_heads);
    for (int c = 0; c < layout.columns(); ++c) args.output_grad[row * args.grad_stride + c] = 0.0f;
  }
  return weight;
}

WD_FN void team_loss_row(const TeamLossArgs& args, std::int64_t team) {
  const ActionLayout& layout = args.layout;
  const int A = args.mixer.agents;
  const std::int64_t first_row = team * A, rows = args.teams * A;
  float* const q = args.q + first_row;
  const float weight = values_of_team(args, first_row, q);
  const MixerRow mixer{args.mixer, args.weights + team * args.weights_stride};
  const float target = args.target[team * args.target_stride];
  const float value = weight != 0.0f ? mixer.value(q) : 0.0f;
  const LossAndSlope loss = weight != 0.0f ? huber_of(target - value, args.huber) : LossAndSlope{0.0f, 0.0f};
  const float sums[kNumTdSums] = {weight, weight * loss.loss, weight * value, weight * target};
  for (int i = 0; i < A; ++i) {
    for (int k = 0; k < kNumTdSums; ++k)
      args.row_sums[k * rows + first_row + i] = i == 0 && weight != 0.0f ? sums[k] : 0.0f;
    if (args.error != nullptr) args.error[first_row + i] = abs(target - value);
  }
  float* const weights_grad = args.weights_grad + team * args.weights_grad_stride;
  if (weight == 0.0f) {
    for (int k = 0; k < args.mixer.outputs(); ++k) weights_grad[k] = 0.0f;
    return;
  }
  const auto action_of = [&](std::int64_t row) { return args.action + row * layout.num_heads; };
  const auto grad_of = [&](std::int64_t row) { return args.output_grad + row * args.grad_stride; };
  mixer.gradient(q, -weight * loss.slope, weights_grad, [&](int i, float part) {
    const std::int64_t row = first_row + i;
    if (weight_of_row(args, row) != 0.0f) grad_of(row)[action_of(row)[0]] += part;
  });
  for (std::int64_t row = first_row; row < first_row + A; ++row)  // the other heads have the same gradient
    for (int h = 1, first = layout.head_size[0]; h < layout.num_heads; first += layout.head_size[h++])
      grad_of(row)[first + action_of(row)[h]] =
          weight_of_row(args, row) != 0.0f ? grad_of(row)[action_of(row)[0]] : 0.0f;
}

WD_FN void team_reward_row(const TeamRewardArgs& args, std::int64_t team) {
  float reward = 0.0f;
  bool plays = false;
  for (std::int64_t row = team * args.agents; row < (team + 1) * args.agents; ++row) {
    if (args.mask[row] == 0) continue;
    reward += args.reward[row];
    plays = true;
  }
  args.team_reward[team] = reward;
  args.team_mask[team] = plays ? 1 : 0;
}

}  // namespace wd
