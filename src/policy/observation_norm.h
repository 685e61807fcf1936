// observation_norm.h: the running mean and deviation of what the networks of a policy read, by column.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "src/nets/entities.h"
#include "wd/config.h"
#include "wd/device.h"
#include "wd/named_tensor.h"
#include "wd/trajectory.h"

namespace wd {

class ObservationNorm {
 public:
  // Columns of the observation, or of the features of entities (kernels/entities.h). Throws UsageError if
  // they are rows of a table that nothing computes.
  ObservationNorm(const PolicyLayout& layout, const ModelSettings& model, Device device);

  // [columns, 2] float32 {mean, deviation}, 0 and 1 before the first rollout. Its memory stays.
  const at::Tensor& norm() const { return norm_; }
  // Writes {count, sum, sum of squares} of every column over the transitions of a rollout to moments(),
  // [columns, 3] float64, which the caller may add over ranks. Enqueues.
  void count(const PolicyBuffers& buffers, int steps);
  const at::Tensor& moments() const { return moments_; }
  // Merges moments() into the running ones, all of the training alike (kernels/running.h). Enqueues.
  void merge();
  std::vector<NamedTensor> statistics() const {
    return {{"observation_norm", norm_}, {"observation_moments", running_}};
  }

 private:
  void count_rows(const at::Tensor& rows, const at::Tensor& mask);

  Device device_;
  std::optional<EntityReader> entities_;
  at::Tensor norm_, running_, moments_, partial_;
  at::Tensor features_, found_;  // of the rows of one step, if the networks read entities
};

}  // namespace wd
