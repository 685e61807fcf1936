// host_rows.cpp: copies with torch, because seats have gaps between their rows.
#include "src/replicas/host_rows.h"

#include <ATen/Context.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include "src/device/tensor_device.h"

namespace wd {

constexpr std::int64_t kBoundFloats = sizeof(Bounds) / sizeof(float);

HostRows::Pair HostRows::pair(at::Tensor& host, const void* memory, at::ScalarType type,
                              std::int64_t replicas, std::int64_t agents, std::int64_t rows_apart,
                              std::int64_t width) {
  const std::vector<std::int64_t> shape = {replicas, agents, width};
  const auto options = at::TensorOptions().dtype(type);
  if (!host.defined() || host.sizes() != at::IntArrayRef(shape) || host.scalar_type() != type)
    host = at::zeros(shape, options.pinned_memory(device_.is_cuda() && at::hasCUDA()));  // not if emulated
  return {at::from_blob(const_cast<void*>(memory), shape, {rows_apart * width, width, 1}, nullptr,
                        options.device(torch_device(device_)), torch_device(device_)),
          host};
}

StepView HostRows::begin(const StateLayout& layout, const StepView& rows) {
  next_ = 0;
  results_.clear();
  StepView view = rows;
  const std::int64_t E = rows.num_replicas;
  std::vector<Pair> inputs;
  const auto place = [&]<typename T>(T*& pointer, at::ScalarType type, std::int64_t agents,
                                     std::int64_t rows_apart, std::int64_t width, bool in, bool out) {
    if (next_ == host_.size()) host_.emplace_back();
    // An array that this step lacks keeps its place: the padding of rows stays 0.
    at::Tensor& host = host_[next_++];
    if (pointer == nullptr) return;
    const Pair both = pair(host, pointer, type, E, agents, rows_apart, width);
    if (in) inputs.push_back(both);
    if (out) results_.push_back(both);
    pointer = static_cast<T*>(both.host.data_ptr());
  };
  place(view.blocks, at::kByte, 1, 1, layout.block_bytes, true, true);
  place(view.chosen, at::kByte, 1, 1, 1, true, false);
  // Rows of replicas that are not stepped stay as they are.
  const bool partial = rows.chosen != nullptr;
  for (auto* const flags : {&view.terminated, &view.truncated, &view.reset_step})
    place(*flags, at::kByte, 1, 1, 1, partial, true);
  for (int k = 0; k < view.num_streams; ++k)
    place(view.streams[k], at::kByte, 1, 1, view.stream_bytes[k], partial, true);
  for (int r = 0; r < view.num_seats; ++r) {
    SeatView& seat = view.seats[r];
    const int apart = seat.policy_agents;
    const auto observation = rows.observation_type == ObservationType::kFloat32 ? at::kFloat : at::kBFloat16;
    if (seat.bounds != nullptr) {
      const Pair bounds = pair(host_bounds_[static_cast<std::size_t>(r)], seat.bounds, at::kFloat, 1, 1, 1,
                               std::int64_t{seat.action_width} * kBoundFloats);
      inputs.push_back(bounds);
      seat.bounds = static_cast<const Bounds*>(bounds.host.data_ptr());
    }
    place(seat.action, at::kInt, seat.count, apart, seat.action_width, true, false);
    place(seat.reward, at::kFloat, seat.count, apart, 1, partial, true);
    for (auto* const flags : {&seat.agent_terminated, &seat.active, &seat.restarted})
      place(*flags, at::kByte, seat.count, apart, 1, partial, true);
    place(seat.observation, observation, seat.count, seat.observed_agents, seat.observation_stride, partial,
          true);
    place(seat.action_mask, at::kByte, seat.count, apart, seat.mask_width, partial, true);
    seat.policy_agents = seat.observed_agents = seat.count;
  }
  place(view.statistic, at::kFloat, 1, 1, rows.num_statistics, true, true);
  view.dropped = nullptr;
  for (const Pair& input : inputs) input.host.copy_(input.device);
  return view;
}

void HostRows::end() {
  for (const Pair& result : results_) result.device.copy_(result.host, true);
}

}  // namespace wd
