// critics_body.h: targets and losses of one row, the same code on both devices.
#pragma once

#include "kernels/distribution.h"
#include "wd/kernels/critics.h"

namespace wd {

WD_FN float mean_value(const CriticsOutput& critics, int critic, std::int64_t row) {
  const float* const value = critics.value[critic][row];
  float sum = 0.0f;
  for (int k = 0; k < critics.quantiles; ++k) sum += value[k];
  return sum / static_cast<float>(critics.quantiles);
}

struct LowestCritic {
  int critic;
  float mean;

  WD_FN static LowestCritic of(const CriticsOutput& critics, std::int64_t row) {
    LowestCritic lowest = {0, mean_value(critics, 0, row)};
    for (int i = 1; i < critics.count; ++i) {
      const float mean = mean_value(critics, i, row);
      if (mean < lowest.mean) lowest = {i, mean};
    }
    return lowest;
  }
};

WD_FN void critic_target_row(const CriticTargetArgs& args, std::int64_t row) {
  const int K = args.critics.quantiles;
  float* const target = args.target[row];
  for (int k = 0; k < K; ++k) target[k] = args.reward[row];
  const float discount = args.discount[row];
  if (discount == 0.0f) return;
  const int lowest = LowestCritic::of(args.critics, row).critic;
  const float* const value = args.critics.value[lowest][row];
  const float entropy = args.log_prob == nullptr ? 0.0f : -*args.alpha * args.log_prob[row];
  for (int k = 0; k < K; ++k) target[k] += discount * (value[k] + entropy);
}

// What a row adds to the sums, if it counts.
struct ActorRow {
  float loss, value, log_prob, highest;
};

WD_FN void write_actor_sums(float* row_sums, std::int64_t rows, std::int64_t row, bool counts,
                            const ActorRow& of) {
  float* const sums = row_sums + row;
  sums[kActorCount * rows] = counts ? 1.0f : 0.0f;
  sums[kActorLoss * rows] = counts ? of.loss : 0.0f;
  sums[kActorValue * rows] = counts ? of.value : 0.0f;
  sums[kActorLogProb * rows] = counts ? of.log_prob : 0.0f;
  sums[kActorHighest * rows] = counts ? of.highest : 0.0f;
}

WD_FN void actor_loss_row(const ActorLossArgs& args, std::int64_t row) {
  const bool counts = args.weight[row] != 0.0f;
  const int K = args.critics.quantiles;
  const LowestCritic lowest = LowestCritic::of(args.critics, row);
  for (int i = 0; i < args.critics.count; ++i) {
    float* const grad = args.value_grad[i][row];
    for (int k = 0; k < K; ++k) grad[k] = counts && i == lowest.critic ? -1.0f / static_cast<float>(K) : 0.0f;
  }
  const float log_prob = args.log_prob == nullptr ? 0.0f : args.log_prob[row],
              alpha = args.log_prob == nullptr ? 0.0f : *args.alpha;
  args.counts[row] = counts ? 1.0f : 0.0f;
  write_actor_sums(args.row_sums, args.rows, row, counts,
                   {alpha * log_prob - lowest.mean, lowest.mean, log_prob, 0.0f});
}

// The lowest value that a critic computes for this choice.
WD_FN float lowest_of_choice(const CriticsOutput& critics, std::int64_t row, int choice) {
  float lowest = critics.value[0][row][choice];
  for (int i = 1; i < critics.count; ++i) lowest = min(lowest, critics.value[i][row][choice]);
  return lowest;
}

// Sums over the legal choices of a head.
struct HeadSums {
  float value = 0.0f, log_prob = 0.0f;  // of p q and p log p

  WD_FN static HeadSums of(const CriticsOutput& critics, std::int64_t row, int first, const float* logits,
                           const std::uint8_t* legal, int n, const Softmax& softmax) {
    HeadSums sums;
    for (int i = 0; i < n; ++i) {
      const float p = softmax.weight(logits, legal, i) / softmax.sum;
      if (!(p > 0.0f)) continue;
      sums.value += p * lowest_of_choice(critics, row, first + i);
      sums.log_prob += p * softmax.log_prob(logits[i]);
    }
    return sums;
  }
};

WD_FN void choices_target_row(const CriticTargetArgs& args, std::int64_t row) {
  float& target = *args.target[row];
  target = args.reward[row];
  if (args.discount[row] == 0.0f) return;
  const ActionLayout& layout = args.choices.layout;
  const float* const logits = args.choices.logits[row];
  const std::uint8_t* const legal = args.choices.legal[row];
  float value = 0.0f;
  for (int h = 0, first = 0; h < layout.num_heads; first += layout.head_size[h++]) {
    const int n = layout.head_size[h];
    const std::uint8_t* const of_head = legal == nullptr ? nullptr : legal + first;
    const Softmax softmax = Softmax::of(logits + first, of_head, n);
    if (!(softmax.sum > 0.0f)) continue;
    const HeadSums sums = HeadSums::of(args.critics, row, first, logits + first, of_head, n, softmax);
    value += sums.value - *args.alpha * sums.log_prob;
  }
  target += args.discount[row] * value;
}

// The logarithm of the number of legal choices; 0 without any.
WD_FN float highest_entropy(const std::uint8_t* legal, int n) {
  int allowed = 0;
  for (int i = 0; i < n; ++i) allowed += legal == nullptr || legal[i] != 0 ? 1 : 0;
  return allowed > 0 ? log(static_cast<float>(allowed)) : 0.0f;
}

// With f_i = alpha log p_i - q_i, the gradient by logit i is p_i (f_i - sum_j p_j f_j).
WD_FN void choices_loss_row(const ChoicesLossArgs& args, std::int64_t row) {
  const bool counts = args.weight[row] != 0.0f;
  const ActionLayout& layout = args.choices.layout;
  const float* const logits = args.choices.logits[row];
  float* const grad = args.logits_grad[row];
  const std::uint8_t* const legal = args.choices.legal[row];
  float value = 0.0f, log_prob = 0.0f, highest = 0.0f;
  for (int h = 0, first = 0; h < layout.num_heads; first += layout.head_size[h++]) {
    const int n = layout.head_size[h];
    const std::uint8_t* const of_head = legal == nullptr ? nullptr : legal + first;
    const Softmax softmax = Softmax::of(logits + first, of_head, n);
    highest += highest_entropy(of_head, n);
    for (int i = 0; i < n; ++i) grad[first + i] = 0.0f;
    if (!counts || !(softmax.sum > 0.0f)) continue;
    const HeadSums sums = HeadSums::of(args.critics, row, first, logits + first, of_head, n, softmax);
    const float mean = *args.alpha * sums.log_prob - sums.value;
    for (int i = 0; i < n; ++i) {
      const float p = softmax.weight(logits + first, of_head, i) / softmax.sum;
      if (!(p > 0.0f)) continue;
      const float f =
          *args.alpha * softmax.log_prob(logits[first + i]) - lowest_of_choice(args.critics, row, first + i);
      grad[first + i] = p * (f - mean);
    }
    value += sums.value;
    log_prob += sums.log_prob;
  }
  write_actor_sums(args.row_sums, args.rows, row, counts,
                   {*args.alpha * log_prob - value, value, log_prob, highest});
}

WD_FN void temperature_of(const TemperatureArgs& args, std::int64_t) {
  const double count = args.sums[kActorCount];
  const double target = count * args.target_entropy + args.share_of_highest * args.sums[kActorHighest];
  const double gap = args.sums[kActorLogProb] + target;
  args.gradient[0] = static_cast<float>(-gap);
  args.totals[0] = count;
  args.totals[1] = -gap * static_cast<double>(args.log_alpha[0]);
}

WD_FN void value_penalty_row(const ValuePenaltyArgs& args, std::int64_t row) {
  float* const grad = args.grad[row];
  const float slope = args.weight[row] * args.scale / static_cast<float>(args.quantiles);
  for (int k = 0; k < args.quantiles; ++k) grad[k] = (args.adds ? grad[k] : 0.0f) + slope;
}

}  // namespace wd
