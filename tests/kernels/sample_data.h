// sample_data.h: runs the sampler on a policy's output, on either device.
#pragma once

#include <algorithm>

#include "kernels/sample.h"
#include "tests/kernels/random_data.h"

namespace wd {

inline ActionLayout categorical(const std::vector<int>& heads) {
  ActionLayout layout{.num_heads = static_cast<int>(heads.size())};
  for (int h = 0; h < layout.num_heads; ++h) layout.head_size[h] = heads[h];
  return layout;
}

// A policy's output for rows (replica, agent), and the settings of the sampler.
struct SampleData {
  SampleArgs settings;              // layout, num_agents, key, step, first_replica, policy, greedy
  std::vector<float> output;        // [rows, columns + 1]: logits or means, then the value
  std::vector<float> log_std;       // [components]; kGsde: [components, L]
  std::vector<std::uint8_t> legal;  // [rows, columns], or empty
  std::vector<float> value_norm{};  // {mean, deviation}, or empty
  std::vector<float> latent{};      // kGsde: [rows, L]
  int padding = 0;                  // entries between rows
  std::int64_t rows() const {
    return static_cast<std::int64_t>(output.size()) / (settings.layout.columns() + 1);
  }
};

struct Sampled {
  std::vector<std::int32_t> action;  // [rows, width]; bits of floats for a Gaussian
  std::vector<float> log_prob, value;
};

template <typename Memory>
Sampled run_sample(Memory memory, const SampleData& data) {
  SampleArgs args = data.settings;
  const int columns = args.layout.columns();
  const auto rows = static_cast<std::size_t>(data.rows()),
             width = static_cast<std::size_t>(args.layout.action_width());
  args.rows = data.rows();
  args.layout.log_std = memory.put(data.log_std);
  const auto stride = std::int64_t{columns} + 1 + data.padding;
  std::vector<float> output(rows * static_cast<std::size_t>(stride), 1e30f);
  for (std::size_t row = 0; row < rows; ++row)
    std::copy_n(data.output.begin() + static_cast<std::int64_t>(row) * (columns + 1), columns + 1,
                output.begin() + static_cast<std::int64_t>(row) * stride);
  const float* const put = memory.put(output);
  args.networks = {{put, stride}, {put + columns, stride}, {memory.put(data.latent), args.layout.latent}};
  args.action_mask = memory.put(data.legal);
  args.value_norm = memory.put(data.value_norm);
  args.action = memory.template make<std::int32_t>(rows * width);
  args.log_prob = memory.template make<float>(rows);
  args.value = memory.template make<float>(rows);
  sample(memory.queue(), args);
  return {memory.get(args.action, rows * width), memory.get(args.log_prob, rows),
          memory.get(args.value, rows)};
}

// Random output for replicas of num_agents agents. If `masks` is set, every head keeps at least one legal
// choice.
inline SampleData random_sample_data(Draws& draws, const ActionLayout& layout, int replicas, int num_agents,
                                     bool masks) {
  const std::int64_t rows = static_cast<std::int64_t>(replicas) * num_agents;
  SampleData data;
  data.settings = {
      .num_agents = num_agents, .layout = layout, .key = RandomKey::of(7, RandomUse::kAction), .step = 12345};
  data.settings.noise_key = RandomKey::of(7, RandomUse::kNoiseMatrix);
  data.settings.noise_every = 4;
  data.output = draws.uniforms(rows * (layout.columns() + 1), -3.0f, 3.0f);
  data.log_std = draws.uniforms(layout.components * std::max(layout.latent, 1), -1.5f, 0.5f);
  data.latent = draws.uniforms(rows * layout.latent, -1.0f, 1.0f);
  for (std::int64_t row = 0; masks && row < rows; ++row) {
    for (int h = 0; h < layout.num_heads; ++h) {
      const int kept = draws.below(layout.head_size[h]);
      for (int i = 0; i < layout.head_size[h]; ++i)
        data.legal.push_back(i == kept || draws.one_in(2) ? 1 : 0);
    }
  }
  return data;
}

}  // namespace wd
