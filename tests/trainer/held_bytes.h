// held_bytes.h: the memory that the parts of a trainer hold, to compare with what was computed before.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <memory>
#include <set>

#include "wd/model.h"
#include "wd/trainer.h"
#include "wd/trajectory.h"

namespace wd {

inline double held_bytes(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<double>(tensor.nbytes()) : 0.0;
}

inline double held_bytes(const Trajectory& trajectory) {
  double sum = 0.0;
  for (const at::Tensor& buffer : trajectory.buffers()) sum += held_bytes(buffer);
  return sum;
}

// A table of observations is shared by all policies.
inline double observation_bytes(const Trajectory& trajectory) {
  std::set<const void*> seen;
  double sum = 0.0;
  for (const PolicyBuffers& policy : trajectory.policies())
    if (seen.insert(policy.observation.const_data_ptr()).second) sum += held_bytes(policy.observation);
  return sum;
}

// Parameters, their copies in bfloat16, averages, gradients and moments of all policies, and the parameters
// that played.
inline double network_bytes(Trainer& trainer) {
  double sum = 0.0;
  for (const Policy& policy : trainer.policies())
    for (const Model* const model :
         {static_cast<const Model*>(&policy.model()), static_cast<const Model*>(policy.critics())})
      if (model != nullptr)
        sum += held_bytes(model->parameters()) + held_bytes(model->shadow()) + held_bytes(model->gradients());
  if (!trainer.played().empty())
    for (const Policy& policy : trainer.policies())
      sum += held_bytes(policy.parameters()) +
             (policy.critics() ? held_bytes(policy.critics()->parameters()) : 0.0);
  for (std::size_t p = 0; p < trainer.policies().size(); ++p) {
    const Policy& policy = trainer.policies()[p];
    if (!trainer.average(p).empty())
      sum += held_bytes(policy.parameters()) +
             (policy.critics() ? held_bytes(policy.critics()->parameters()) : 0.0);
  }
  for (const auto& [file, tensors] : trainer.snapshot().files) {
    if (!file.starts_with("optimizer/")) continue;
    for (const NamedTensor& named : tensors)
      if (named.name.ends_with("_moment") && !named.name.starts_with("temperature."))
        sum += held_bytes(named.tensor);
  }
  return sum;
}

// What algorithms keep besides moments and steps, in checkpoints.
inline double algorithm_bytes(Trainer& trainer) {
  double sum = 0.0;
  for (const auto& [file, tensors] : trainer.snapshot().files) {
    if (!file.starts_with("optimizer/")) continue;
    for (const NamedTensor& named : tensors)
      if (named.name != "steps" && !named.name.ends_with("_moment")) sum += held_bytes(named.tensor);
  }
  return sum;
}

// Counts the memory of tensors on the host while it exists.
class CountingMemory final : public c10::Allocator {
 public:
  CountingMemory() : inner_(c10::GetCPUAllocator()) { c10::SetCPUAllocator(this, kPriority); }
  ~CountingMemory() override { c10::SetCPUAllocator(inner_, kPriority); }
  CountingMemory(const CountingMemory&) = delete;
  CountingMemory& operator=(const CountingMemory&) = delete;

  // [bytes] of tensors that were made since and still exist.
  double held() const { return static_cast<double>(*held_); }

  c10::DataPtr allocate(std::size_t bytes) override {
    auto* const memory = new Memory{inner_->allocate(bytes), static_cast<std::int64_t>(bytes), held_};
    *held_ += memory->bytes;
    return {memory->data.get(), memory, &release, memory->data.device()};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    inner_->copy_data(to, from, bytes);
  }

 private:
  using Count = std::shared_ptr<std::atomic<std::int64_t>>;  // tensors may outlive the allocator
  struct Memory {
    c10::DataPtr data;
    std::int64_t bytes;
    Count held;
  };
  static void release(void* context) {
    const std::unique_ptr<Memory> memory(static_cast<Memory*>(context));
    *memory->held -= memory->bytes;
  }

  static constexpr std::uint8_t kPriority = 200;
  c10::Allocator* inner_;
  Count held_ = std::make_shared<std::atomic<std::int64_t>>(0);
};

}  // namespace wd
