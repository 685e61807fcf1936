// evidence.cpp: copies states and actions on the device; they are read only after a failure.
#include "src/trainer/evidence.h"

#include <ATen/ATen.h>

#include "src/device/device.h"
#include "src/trainer/impl.h"

namespace wd {
namespace {

// Rows of `from`, [steps, E, ...], as the kernel copies them to `to`, [steps, ...].
EvidenceArray array_of(const at::Tensor& from, const at::Tensor& to, std::int64_t steps) {
  return {static_cast<const std::byte*>(from.const_data_ptr()),
          static_cast<std::byte*>(to.mutable_data_ptr()), steps,
          static_cast<std::int64_t>(to.nbytes()) / to.size(0)};
}

}  // namespace

EvidenceKeeper::EvidenceKeeper(const Replicas& replicas, const Trajectory& trajectory, const Guard& guard)
    : replicas_(replicas),
      trajectory_(trajectory),
      guard_(guard),
      starts_(at::zeros_like(replicas.blocks())) {
  kept_.block = at::zeros_like(starts_[0]);
  for (const PolicyBuffers& buffers : trajectory.policies())
    kept_.policies.push_back(
        {at::zeros_like(buffers.action.select(1, 0), at::MemoryFormat::Contiguous), ActionUnit{}});
}

void EvidenceKeeper::rollout_begins() { starts_.copy_(replicas_.blocks()); }

void EvidenceKeeper::rollout_ended(const TrainingClock& clock) {
  EvidenceArgs args;
  static_assert(kMaxSeats + 1 <= kMaxEvidence);
  args.failure = guard_.failure();
  args.time = clock.time();
  args.replicas = trajectory_.num_envs();
  args.array[args.num_arrays++] = array_of(starts_, kept_.block.unsqueeze(0), 1);
  for (std::size_t p = 0; p < kept_.policies.size(); ++p) {
    const PolicyBuffers& buffers = trajectory_.policies()[p];
    args.array[args.num_arrays++] = array_of(buffers.action, kept_.policies[p].action, trajectory_.steps());
  }
  keep_evidence(current_queue(replicas_.device()), args);
}

std::optional<Evidence> EvidenceKeeper::evidence() const {
  const std::optional<Guard::Found> found = guard_.found();
  if (!found) return {};
  Evidence evidence{
      found->iteration,  replicas_.options().first_replica + static_cast<std::uint32_t>(found->replica),
      kept_.block.cpu(), {},
      found->policy,     found->slot,
      found->message};
  for (std::size_t p = 0; p < kept_.policies.size(); ++p)
    evidence.policies.push_back(
        {kept_.policies[p].action.narrow(0, 0, found->steps).cpu(), trajectory_.policies()[p].unit});
  return evidence;
}

std::optional<Evidence> evidence_of(const Trainer& trainer) { return trainer.impl_->evidence.evidence(); }

}  // namespace wd
