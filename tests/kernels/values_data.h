// values_data.h: runs the values of choices and their gradients on either device.
#pragma once

#include <vector>

#include "kernels/values.h"
#include "tests/kernels/random_data.h"

namespace wd {

inline std::vector<ValuesShape> values_shapes() {
  return {{.choices = 9, .num_heads = 3, .head_size = {3, 2, 4}, .quantiles = 5, .dueling = true},
          {.choices = 7, .num_heads = 1, .head_size = {7}, .quantiles = 1, .dueling = true},
          {.choices = 5, .num_heads = 2, .head_size = {4, 1}, .quantiles = 33}};
}

struct ValuesResult {
  std::vector<float> z, q, of_z, of_q;  // of_z, of_q: gradients of the outputs
};

template <typename Memory>
ValuesResult run_values(Memory memory, const ValuesShape& shape, std::int64_t rows) {
  Draws draws(31);
  const std::int64_t stride = shape.outputs() + 3, numbers = std::int64_t{shape.choices} * shape.quantiles,
                     z_stride = numbers + 1, q_stride = shape.choices + 2;
  const auto room = [&](std::int64_t each) {
    return Rows<float>{memory.put(std::vector<float>(static_cast<std::size_t>(rows * each), 7.0f)), each};
  };
  const auto all = [&](const Rows<float>& values) {
    return memory.get(values.pointer, static_cast<std::size_t>(rows * values.stride));
  };
  const DuelingArgs forward{.shape = shape,
                            .rows = rows,
                            .output = {memory.put(draws.uniforms(rows * stride, -2.0f, 2.0f)), stride},
                            .z = room(z_stride)};
  if (shape.dueling) dueling(memory.queue(), forward);
  const QuantileMeanArgs mean{
      .shape = shape, .rows = rows, .z = shape.dueling ? forward.z : forward.output, .q = room(q_stride)};
  quantile_mean(memory.queue(), mean);
  ValuesBackwardArgs backward{.shape = shape,
                              .rows = rows,
                              .grad = {memory.put(draws.uniforms(rows * z_stride, -1.0f, 1.0f)), z_stride},
                              .output_grad = room(stride)};
  values_backward(memory.queue(), backward);
  const std::vector<float> of_z = all(backward.output_grad);
  backward.of_mean = true;
  values_backward(memory.queue(), backward);
  return {all(forward.z), all(mean.q), of_z, all(backward.output_grad)};
}

}  // namespace wd
