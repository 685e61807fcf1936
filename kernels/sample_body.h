// sample_body.h: draws the action of one row, the same code on both devices.
#pragma once

#include <vector>

#include "kernels/distribution.h"
#include "kernels/sample.h"

namespace wd {

// The random words of a row: a function of replica, agent, step and policy.
struct RowBits {
  const SampleArgs& args;
  std::int64_t row;

  // Of the row among all E * A.
  WD_FN std::int64_t place() const {
    return args.index == nullptr ? args.first_row + row
                                 : args.index[row / args.unit] * args.unit + row % args.unit;
  }

  // The words for draws 4 group .. 4 group + 3.
  WD_FN Philox operator()(int group) const {
    const std::int64_t at = place();
    const auto replica = args.first_replica + static_cast<std::uint32_t>(at / args.num_agents);
    const auto agent = static_cast<std::uint32_t>(at % args.num_agents);
    const std::uint64_t step = step_of(args);
    return philox({{replica, static_cast<std::uint32_t>(step), agent | (args.policy << 24),
                    (static_cast<std::uint32_t>(step >> 32) << 8) | static_cast<std::uint32_t>(group)}},
                  args.key.key0, args.key.key1);
  }

  // The words for the elements 4 group .. 4 group + 3 of row k of the noise matrix (Gsde): the same for all
  // steps of a block of noise_every steps.
  WD_FN Philox noise(int k, int group) const {
    const std::int64_t at = place();
    const auto replica = args.first_replica + static_cast<std::uint32_t>(at / args.num_agents);
    const auto agent = static_cast<std::uint32_t>(at % args.num_agents);
    const std::uint64_t block = step_of(args) / static_cast<std::uint64_t>(args.noise_every);
    return philox({{replica, static_cast<std::uint32_t>(block), agent | (args.policy << 24),
                    (static_cast<std::uint32_t>(block >> 32) << 24) | (static_cast<std::uint32_t>(k) << 16) |
                        static_cast<std::uint32_t>(group)}},
                  args.noise_key.key0, args.noise_key.key1);
  }
};

WD_FN float plain_value(const SampleArgs& args, float value) {
  return args.value_norm == nullptr ? value : value * args.value_norm[1] + args.value_norm[0];
}

// Where the numbers of a row are.
struct SampleInput {
  const float* output;        // [columns], or null
  const float* value;         // null: there are no values
  const std::uint8_t* legal;  // [columns], or null
  float* scratch = nullptr;   // DistributionRow::scratch
};

WD_FN SampleInput input_of(const SampleArgs& args, std::int64_t row) {
  return {args.networks.output[row], args.networks.value[row],
          args.action_mask == nullptr ? nullptr : args.action_mask + row * args.layout.columns()};
}

struct SampleRow {
  const SampleArgs& args;
  std::int64_t row;
  SampleInput input;

  template <typename D>
  WD_FN void operator()(const D& distribution) const {
    const ActionLayout& layout = args.layout;
    const bool writes = writes_row(distribution);
    const DistributionRow seen = {layout,        input.output,
                                  input.legal,   args.networks.latent[row],
                                  input.scratch, args.networks.output[row]};
    float value = 0.0f;
    if constexpr (requires { D::value(seen); })
      value = D::value(seen);
    else if (input.value != nullptr)
      value = plain_value(args, *input.value);
    if (writes) args.value[row] = value;
    if (args.action == nullptr) return;
    Exploration exploration = {args.greedy, args.exploration == nullptr ? 0.0f : args.exploration->epsilon};
    if (layout.distribution == Distribution::kPoint) explore_point(exploration);
    const float log_prob =
        distribution.sample(seen, exploration, RowBits{args, row}, args.action + row * layout.action_width());
    if (writes) args.log_prob[row] = log_prob;
  }

  WD_FN void explore_point(Exploration& exploration) const {
    if (args.exploration != nullptr) {
      exploration.deviation = args.exploration->deviation;
      exploration.damping = args.exploration->damping;
    }
    if (args.noise == nullptr) return;
    if (args.restarted[row] == 0) exploration.noise = args.noise + row * args.layout.components;
    exploration.next_noise = args.next_noise + row * args.layout.components;
  }
};

WD_FN void sample_row(const SampleArgs& args, std::int64_t row) {
  SampleInput input = input_of(args, row);
#ifndef __CUDA_ARCH__
  thread_local std::vector<float> scratch;
  scratch.resize(static_cast<std::size_t>(args.layout.columns()));
  input.scratch = scratch.data();
#endif
  with_distribution(args.layout, SampleRow{args, row, input});
}

}  // namespace wd
