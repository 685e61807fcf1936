// team_body.h: value, target and loss of one team, the same code on both devices.
#pragma once

#include "kernels/td_body.h"
#include "wd/kernels/team.h"

namespace wd {

// Where the numbers of one team's mixer are.
struct MixerRow {
  TeamMixer mixer;
  const float* weights;

  WD_FN static MixerRow of(const Teams& teams, std::int64_t team) {
    return {teams.mixer, teams.weights[team]};
  }
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
  const int A = args.teams.mixer.agents;
  float* const q = args.teams.q + team * A;
  bool plays = false;
  for (int i = 0; i < A; ++i) {
    const bool in_game = args.in_game[team * A + i] != 0;
    q[i] = in_game ? args.value[team * A + i] : 0.0f;
    plays = plays || in_game;
  }
  args.team_value[team] = plays ? MixerRow::of(args.teams, team).value(q) : 0.0f;
}

WD_FN void team_target_row(const TeamTargetArgs& args, std::int64_t team) {
  const NextValues& next = args.next;
  const int A = args.teams.mixer.agents;
  float* const q = args.teams.q + team * A;
  float reward = 0.0f, discount = 0.0f;
  for (int i = 0; i < A; ++i) {
    const std::int64_t row = team * A + i;
    reward += next.reward[row];
    discount = max(discount, next.discount[row]);
    q[i] = 0.0f;
    if (next.discount[row] == 0.0f) continue;
    const float* const value = next.value[row];
    each_best_choice(next, row, [=](int column) { q[i] += value[column]; });
  }
  float& target = *next.target[team];
  target = reward;
  if (discount != 0.0f) target += discount * MixerRow::of(args.teams, team).value(q);
}

// Sets q to the values of what the agents of a team did, and the gradients of their rows to 0. Returns the
// team's weight.
WD_FN float values_of_team(const TeamLossArgs& args, std::int64_t first_row, float* q) {
  const ValueLoss& loss = args.loss;
  const ActionLayout& layout = loss.layout;
  float weight = 0.0f;
  for (int i = 0; i < args.teams.mixer.agents; ++i) {
    const std::int64_t row = first_row + i;
    const float own = weight_of_row(loss, row);
    weight = max(weight, own);
    q[i] =
        own == 0.0f ? 0.0f : value_of_action(layout, loss.output[row], loss.action + row * layout.num_heads);
    for (int c = 0; c < layout.columns(); ++c) loss.output_grad[row][c] = 0.0f;
  }
  return weight;
}

WD_FN void team_loss_row(const TeamLossArgs& args, std::int64_t team) {
  const ValueLoss& values = args.loss;
  const ActionLayout& layout = values.layout;
  const MixerRow mixer = MixerRow::of(args.teams, team);
  const int A = mixer.mixer.agents;
  const std::int64_t first_row = team * A, rows = args.teams.count * A;
  float* const q = args.teams.q + first_row;
  const float weight = values_of_team(args, first_row, q), target = *values.target[team];
  const float value = weight != 0.0f ? mixer.value(q) : 0.0f;
  const LossAndSlope loss =
      weight != 0.0f ? huber_of(target - value, values.huber) : LossAndSlope{0.0f, 0.0f};
  const float sums[kNumTdSums] = {weight, weight * loss.loss, weight * value, weight * target};
  for (int i = 0; i < A; ++i) {
    for (int k = 0; k < kNumTdSums; ++k)
      values.row_sums[k * rows + first_row + i] = i == 0 && weight != 0.0f ? sums[k] : 0.0f;
    if (values.error != nullptr) values.error[first_row + i] = abs(target - value);
  }
  float* const weights_grad = args.weights_grad[team];
  if (weight == 0.0f) {
    for (int k = 0; k < mixer.mixer.outputs(); ++k) weights_grad[k] = 0.0f;
    return;
  }
  const auto action_of = [&](std::int64_t row) { return values.action + row * layout.num_heads; };
  const auto grad_of = [&](std::int64_t row) { return values.output_grad[row]; };
  mixer.gradient(q, -weight * loss.slope, weights_grad, [&](int i, float part) {
    const std::int64_t row = first_row + i;
    if (weight_of_row(values, row) != 0.0f) grad_of(row)[action_of(row)[0]] += part;
  });
  for (std::int64_t row = first_row; row < first_row + A; ++row)  // the other heads have the same gradient
    for (int h = 1, first = layout.head_size[0]; h < layout.num_heads; first += layout.head_size[h++])
      grad_of(row)[first + action_of(row)[h]] =
          weight_of_row(values, row) != 0.0f ? grad_of(row)[action_of(row)[0]] : 0.0f;
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
