// adam_data.h: runs optimizer steps on host data, on either device.
#pragma once

#include "kernels/adam.h"
#include "kernels/loss.h"
#include "kernels/reduce.h"
#include "tests/kernels/random_data.h"

namespace wd {

// A minibatch: gradient [n] of the summed loss, and the sums by LossSum.
struct Minibatch {
  std::vector<float> gradient;
  std::vector<double> totals;
};

inline Minibatch random_minibatch(Draws& draws, std::int64_t n, double count = 256.0) {
  return {draws.uniforms(n, -1.0f, 2.0f),
          {count, 0.25 * count, 2.0 * count, 0.75 * count, 0.01 * count, 7.0}};
}

struct Optimizer {
  std::vector<float> parameter, first, second;
  std::vector<std::uint16_t> shadow;
  std::int64_t steps = 0;
  StepRecord record{.lr = 0.01, .max_grad_norm = 0.5};
  LossRecord losses{};

  static Optimizer of(const std::vector<float>& parameter) {
    Optimizer fresh{.parameter = parameter};
    fresh.first.assign(parameter.size(), 0.0f);
    fresh.second = fresh.first;
    fresh.shadow.assign(parameter.size(), 0);
    return fresh;
  }
};

template <typename Memory>
Optimizer run_adam(Memory memory, const Optimizer& start, const std::vector<Minibatch>& minibatches,
                   bool with_shadow = true) {
  const std::size_t n = start.parameter.size();
  AdamArgs args;
  args.n = static_cast<std::int64_t>(n);
  args.parameter = memory.put(start.parameter);
  args.first_moment = memory.put(start.first);
  args.second_moment = memory.put(start.second);
  if (with_shadow) args.shadow = memory.put(start.shadow);
  args.steps = memory.put(std::vector{start.steps});
  args.record = memory.put(std::vector{start.record});
  RecordLossArgs loss{
      .record = memory.put(std::vector{start.losses}), .num_sums = kNumLossSums, .limited = kApproxKl};
  args.partial = memory.template make<double>(static_cast<std::size_t>(num_chunks(args.n)));
  args.epsilon = 1e-5f;
  for (const Minibatch& minibatch : minibatches) {
    args.gradient = memory.put(minibatch.gradient);
    loss.totals = memory.put(minibatch.totals);
    args.losses = loss;
    adam(memory.queue(), args);
  }
  Optimizer end;
  end.parameter = memory.get(args.parameter, n);
  end.first = memory.get(args.first_moment, n);
  end.second = memory.get(args.second_moment, n);
  end.shadow = with_shadow ? memory.get(args.shadow, n) : start.shadow;
  end.steps = memory.get(args.steps, 1)[0];
  end.record = memory.get(args.record, 1)[0];
  end.losses = memory.get(loss.record, 1)[0];
  return end;
}

}  // namespace wd
