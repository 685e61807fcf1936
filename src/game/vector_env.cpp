// vector_env.cpp: a rollout of one step, whose last row is what the caller sees.
#include "wd/vector_env.h"

#include <ATen/ATen.h>

#include "src/rollout/outcomes.h"
#include "wd/error.h"

namespace wd {
namespace {

at::Tensor last(const at::Tensor& tensor) { return tensor.defined() ? tensor[tensor.size(0) - 1] : tensor; }
at::Tensor flags(const at::Tensor& tensor) { return tensor.defined() ? tensor.view(at::kBool) : tensor; }

}  // namespace

VectorEnv::VectorEnv(const Environment& environment, const ReplicasOptions& options, AutoReset mode)
    : mode_(mode),
      replicas_(environment, options),
      trajectory_(RolloutShape::of_roles(replicas_.spec(), options.num_envs, options.device)) {
  const std::vector<StreamSpec>& streams = replicas_.spec().streams;
  for (std::size_t r = 0; r < trajectory_.policies().size(); ++r) {
    const PolicyBuffers& buffers = trajectory_.policies()[r];
    RoleRows& rows = roles_.emplace_back();
    rows.role = &replicas_.spec().roles[r];
    rows.action = buffers.action[0];
    rows.observation = last(buffers.observation).narrow(-1, 0, buffers.observation_size);
    rows.action_mask = flags(last(buffers.action_mask));
    rows.reward = buffers.reward[0];
    rows.active = flags(last(buffers.active));
    rows.terminated = flags(buffers.agent_terminated[0]);
    if (mode == AutoReset::kSameStep) rows.last_observation = at::zeros_like(rows.observation);
    for (std::size_t k = 0; k < streams.size(); ++k)
      rows.streams.push_back(streams[k].of == StreamSpec::kAgent ? last(buffers.stream_rows[k])
                                                                 : at::Tensor());
  }
  const PolicyBuffers& first = trajectory_.policies().front();
  all_ = {flags(first.terminated[0]),
          flags(first.truncated[0]),
          flags(first.reset_step[0]),
          first.statistics.defined() ? first.statistics[0] : at::Tensor(),
          {}};
  for (std::size_t k = 0; k < streams.size(); ++k)
    all_.streams.push_back(streams[k].of == StreamSpec::kReplica ? last(first.stream_rows[k]).squeeze(1)
                                                                 : at::Tensor());
  ended_ = at::zeros_like(all_.terminated);
  goes_on_ = at::ones_like(all_.terminated);
}

// Begins episodes in these replicas; undefined: in all.
void VectorEnv::begin(const at::Tensor& chosen) {
  replicas_.begin_episodes(chosen);
  StepView rows = without_outcomes(trajectory_.rows(0));
  if (chosen.defined()) rows.chosen = static_cast<const std::uint8_t*>(chosen.const_data_ptr());
  replicas_.step(rows);
}

void VectorEnv::reset(const at::Tensor& chosen) {
  const std::int64_t E = replicas_.num_envs();
  if (chosen.defined() && (chosen.scalar_type() != at::kBool || chosen.sizes() != at::IntArrayRef{E}))
    throw UsageError(concat("replicas to reset are a mask of ", E, " bools, and not of ", chosen.sizes(), ' ',
                            chosen.scalar_type()));
  if (chosen.defined() && !begun_) throw UsageError("the first reset is one of all replicas");
  const at::Tensor here = chosen.defined() ? chosen.to(all_.terminated.device()).contiguous() : chosen;
  begin(here);
  const auto clear = [&](const at::Tensor& rows, double value) {
    if (!rows.defined()) return;
    if (!here.defined()) {
      rows.fill_(value);
    } else {
      rows.masked_fill_(rows.dim() == 2 ? here.unsqueeze(1) : here, value);
    }
  };
  clear(all_.terminated, 0.0);
  clear(all_.truncated, 0.0);
  clear(all_.reset, mode_ == AutoReset::kSameStep ? 0.0 : 1.0);
  for (const RoleRows& role : roles_) {
    clear(role.reward, 0.0);
    clear(role.terminated, 0.0);
  }
  begun_ = true;
}

void VectorEnv::restart(std::uint64_t seed) {
  replicas_.restart(seed);
  reset();
}

void VectorEnv::step() {
  if (!begun_) throw UsageError("a vector environment steps after its first reset: call reset()");
  StepView rows = trajectory_.rows(0);
  if (mode_ == AutoReset::kDisabled) {
    for (const RoleRows& role : roles_) role.reward.zero_();
    at::logical_or_out(ended_, all_.terminated, all_.truncated);
    at::logical_not_out(goes_on_, ended_);
    rows.chosen = static_cast<const std::uint8_t*>(goes_on_.const_data_ptr());
  }
  replicas_.step(rows);
  if (mode_ != AutoReset::kSameStep) return;
  at::logical_or_out(ended_, all_.terminated, all_.truncated);
  // A GPU is not asked whether any ended.
  if (!replicas_.device().is_cuda() && !ended_.any().item<bool>()) return;
  for (const RoleRows& role : roles_) role.last_observation.copy_(role.observation);
  begin(ended_);
}

}  // namespace wd
